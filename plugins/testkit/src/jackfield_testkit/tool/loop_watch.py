"""Watches the event loop while a handler runs: what blocked it, for how long, and at which line.

A busy machine delays everything, which proves nothing about a handler. So this module does not measure
delays, but how a handler uses its loop: CPU time on the loop's thread, sleep inside a step of the loop, and
threads that do not release the interpreter.

Linux provides the scheduling statistics of a thread; elsewhere only the code position of a thread is known.
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

_OWN_STATS = Path("/proc/thread-self/schedstat")

HAS_THREAD_STATS = hasattr(time, "pthread_getcpuclockid") and _OWN_STATS.exists()
"""True if the system provides scheduling statistics of single threads."""

_BEAT = 0.002
# A thread that waits for the interpreter wakes every few milliseconds to request it. A thread that used no
# CPU time between two samples, which are further apart than that, waits for something else.
_INTERVAL = 3 * sys.getswitchinterval()
_LOOP_STEP = asyncio.Handle._run.__code__  # noqa: SLF001 - there is no public name for it
# Starting a thread or a process waits until it runs; how long that takes depends on the machine.
_STARTING = (threading.Thread.start.__code__, subprocess.Popen._execute_child.__code__)  # type: ignore[attr-defined]  # noqa: SLF001


class LoopBlock(NamedTuple):
    """Something that kept the loop from running anything else."""

    ms: float
    how: str
    place: str = ""
    """The line of the tool, if it was seen."""


class _Sample(NamedTuple):
    """The state of the loop's thread at one moment."""

    at: float
    progress: Hashable
    slept: float = 0.0


class ThreadStats:
    """Statistics of the thread that creates it, for other threads to read."""

    def __init__(self) -> None:
        self.ident = threading.get_ident()
        self._state = Path(f"/proc/self/task/{threading.get_native_id()}/stat")
        self._clock = time.pthread_getcpuclockid(self.ident) if HAS_THREAD_STATS else 0

    def asleep(self) -> bool:
        """Return whether the thread waits for an event, as opposed to a CPU or the disk."""
        return not HAS_THREAD_STATS or self._state.read_bytes().rpartition(b")")[2].split()[0] == b"S"

    def progress(self, frame: FrameType) -> Hashable:
        """Return a value that changes whenever the thread runs."""
        return time.clock_gettime_ns(self._clock) if HAS_THREAD_STATS else (id(frame), frame.f_lasti)


def queued_seconds() -> float:
    """Return how long the calling thread has waited for a CPU since it started."""
    return int(_OWN_STATS.read_bytes().split()[1]) / 1e9


class LoopWatch:
    """A heartbeat on the loop, and a thread that samples where the loop is."""

    def __init__(self, folder: Path) -> None:
        self._folder = f"{folder.resolve()}{os.sep}"
        self._computed = LoopBlock(0.0, "computing")
        self._waited = LoopBlock(0.0, "waiting")
        self._starved = LoopBlock(0.0, "by a thread that blocked all others")
        self._seen = ""
        self._sampling = False
        self._ended = threading.Event()

    @property
    def longest(self) -> LoopBlock:
        """The longest block."""
        return max(self._computed, self._waited, self._starved)

    async def __aenter__(self) -> Self:
        self._loop = ThreadStats()
        # Started here, because a handler that never yields may run before the first beat.
        self._heartbeat = asyncio.create_task(self._beat(time.thread_time()))
        self._observer = threading.Thread(target=self._observe, daemon=True)
        self._observer.start()
        while not self._sampling:  # noqa: ASYNC110 - the observer is not on the loop
            await asyncio.sleep(_BEAT)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.sleep(2 * _BEAT)
        self._heartbeat.cancel()
        self._ended.set()
        self._observer.join()

    async def _beat(self, used: float) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            now = time.thread_time()
            self._computed = max(self._computed, LoopBlock((now - used) * 1000, "computing", self._seen))
            used, self._seen = now, ""

    def _observe(self) -> None:
        before: _Sample | None = None
        for late in _sample_delays(self._ended):
            frames = sys._current_frames()  # noqa: SLF001 - there is no public way to see another thread
            if late * 1000 > self._starved.ms:
                others = (frames[each] for each in frames.keys() - {threading.get_ident()})
                place = next(filter(None, map(self._line_of_tool, others)), "")
                self._starved = LoopBlock(late * 1000, self._starved.how, place)
            before = self._sample(frames[self._loop.ident], before)
            self._sampling = True

    def _sample(self, frame: FrameType, before: _Sample | None) -> _Sample | None:
        """Return the current sample; None unless a step of the loop is asleep."""
        codes = {each.f_code for each in _stack(frame)}
        if _LOOP_STEP not in codes:
            return None
        self._seen = self._line_of_tool(frame) or self._seen
        asleep, sample = self._loop.asleep(), _Sample(time.perf_counter(), self._loop.progress(frame))
        if not asleep or not codes.isdisjoint(_STARTING):
            return None
        if before is None or before.progress != sample.progress:
            return sample
        # Where sleep cannot be distinguished from waiting for a CPU, the observer's own delay is not counted.
        slept = before.slept + (sample.at - before.at if HAS_THREAD_STATS else _INTERVAL)
        self._waited = max(self._waited, LoopBlock(slept * 1000, "waiting", self._seen))
        return sample._replace(slept=slept)

    def _line_of_tool(self, frame: FrameType) -> str:
        for each in _stack(frame):
            file = each.f_code.co_filename
            if _real(file).startswith(self._folder):
                line = linecache.getline(file, each.f_lineno).strip()
                return f"{Path(file).name}:{each.f_lineno} in {each.f_code.co_name}: {line}"
        return ""


def _sample_delays(ended: threading.Event) -> Iterator[float]:
    """Yield at every sample how long it was delayed because another thread kept the interpreter."""
    queued = _queued()
    while True:
        started, others = time.perf_counter(), _used_by_others()
        if ended.wait(_INTERVAL):
            return
        late, used = time.perf_counter() - started - _INTERVAL, _used_by_others() - others
        before, queued = queued, _queued()
        # A thread that had the interpreter and waited for a CPU itself is not counted.
        yield min(late - (queued - before), used) if HAS_THREAD_STATS else 0.0


def _used_by_others() -> float:
    return time.process_time() - time.thread_time()


def _queued() -> float:
    return queued_seconds() if HAS_THREAD_STATS else 0.0


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


_real = functools.cache(os.path.realpath)
