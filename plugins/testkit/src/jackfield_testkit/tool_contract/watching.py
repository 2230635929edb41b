"""Watching the loop while a handler runs: what held it, for how long, and at which line.

A busy machine makes everything late, and that says nothing about a handler. So lateness is not measured here,
but what a handler does to its loop: processor time that it takes there, sleep that it makes the loop sleep,
and an interpreter that one of its threads keeps from all others.
"""

from __future__ import annotations

import asyncio
import functools
import linecache
import os
import subprocess
import sys
import threading
import time
from collections.abc import Hashable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import NamedTuple, Self

from jackfield_testkit.tool_contract.threads import ACCOUNTS, ThreadAccount, queued_seconds

_BEAT = 0.002
# A thread that waits for the interpreter wakes every few milliseconds to ask for it. One that used no
# processor at all between two looks, with more than that between them, waits for something else.
_LOOK = 3 * sys.getswitchinterval()
_IN_A_STEP = asyncio.Handle._run.__code__  # noqa: SLF001 - there is no public name for it
# Whoever begins a thread or a process waits until it runs, and that is the machine's affair.
_BEGINNING = (threading.Thread.start.__code__, subprocess.Popen._execute_child.__code__)  # type: ignore[attr-defined]  # noqa: SLF001


class Hold(NamedTuple):
    """Something for which everybody else on the loop had to wait."""

    ms: float
    how: str
    place: str = ""
    """The line of the tool, when it was seen."""


class _Look(NamedTuple):
    """What was seen of the loop's thread at one moment."""

    at: float
    progress: Hashable
    slept: float = 0.0


class LoopWatch:
    """A heart on the loop, and a thread that looks where the loop stands."""

    def __init__(self, folder: Path) -> None:
        self._folder = f"{folder.resolve()}{os.sep}"
        self._computed = Hold(0.0, "computing")
        self._waited = Hold(0.0, "waiting")
        self._hogged = Hold(0.0, "by a thread that let no other run")
        self._seen = ""
        self._looking = False
        self._ended = threading.Event()

    @property
    def longest(self) -> Hold:
        """The longest time in which nothing else on the loop could run."""
        return max(self._computed, self._waited, self._hogged)

    async def __aenter__(self) -> Self:
        self._loop = ThreadAccount()
        # From here on, because a handler that never lets go of the loop may run before the first beat.
        self._heart = asyncio.create_task(self._beat(time.thread_time()))
        self._observer = threading.Thread(target=self._observe, daemon=True)
        self._observer.start()
        while not self._looking:  # noqa: ASYNC110 - the observer is no part of the loop
            await asyncio.sleep(_BEAT)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.sleep(2 * _BEAT)
        self._heart.cancel()
        self._ended.set()
        self._observer.join()

    async def _beat(self, used: float) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            now = time.thread_time()
            self._computed = max(self._computed, Hold((now - used) * 1000, "computing", self._seen))
            used, self._seen = now, ""

    def _observe(self) -> None:
        before: _Look | None = None
        for late in _looks(self._ended):
            frames = sys._current_frames()  # noqa: SLF001 - there is no public way to see another thread
            if late * 1000 > self._hogged.ms:
                others = (frames[each] for each in frames.keys() - {threading.get_ident()})
                place = next(filter(None, map(self._line_of_tool, others)), "")
                self._hogged = Hold(late * 1000, self._hogged.how, place)
            before = self._looked(frames[self._loop.ident], before)
            self._looking = True

    def _looked(self, frame: FrameType, before: _Look | None) -> _Look | None:
        """What is seen now; nothing when no step of the loop is asleep."""
        codes = {each.f_code for each in _stack(frame)}
        if _IN_A_STEP not in codes:
            return None
        self._seen = self._line_of_tool(frame) or self._seen
        asleep, look = self._loop.asleep(), _Look(time.perf_counter(), self._loop.progress(frame))
        if not asleep or not codes.isdisjoint(_BEGINNING):
            return None
        if before is None or before.progress != look.progress:
            return look
        # Where sleep cannot be told from standing in the queue, the observer's own lateness is not counted.
        slept = before.slept + (look.at - before.at if ACCOUNTS else _LOOK)
        self._waited = max(self._waited, Hold(slept * 1000, "waiting", self._seen))
        return look._replace(slept=slept)

    def _line_of_tool(self, frame: FrameType) -> str:
        for each in _stack(frame):
            file = each.f_code.co_filename
            if _real(file).startswith(self._folder):
                line = linecache.getline(file, each.f_lineno).strip()
                return f"{Path(file).name}:{each.f_lineno} in {each.f_code.co_name}: {line}"
        return ""


def _looks(ended: threading.Event) -> Iterator[float]:
    """One moment after the other, and for how long each was put off because no thread gave way."""
    queued = _queued()
    while True:
        began, others = time.perf_counter(), _used_by_others()
        if ended.wait(_LOOK):
            return
        late, used = time.perf_counter() - began - _LOOK, _used_by_others() - others
        before, queued = queued, _queued()
        # One that had the interpreter and stood in the queue itself is not counted.
        yield min(late - (queued - before), used) if ACCOUNTS else 0.0


def _used_by_others() -> float:
    return time.process_time() - time.thread_time()


def _queued() -> float:
    return queued_seconds() if ACCOUNTS else 0.0


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


_real = functools.cache(os.path.realpath)
