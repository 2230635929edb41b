"""Watching the loop while a handler runs: how long everybody else had to wait, and at which line."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from jackfield_testkit.tool_contract.case import Case
from jackfield_testkit.tool_contract.running import call, on_a_loop

_BEAT = 0.002


def problems(case: Case, limit_ms: float, best_of: int) -> Iterator[str]:
    """Whether the best of a few runs still holds the loop for longer than the limit."""
    watches: list[LoopWatch] = []
    for _ in range(case.tool.runs(best_of)):
        watches.append(on_a_loop(_watched(case, limit_ms)))
        if watches[-1].silence_ms <= limit_ms:
            return
    best = min(watches, key=lambda watch: watch.silence_ms)
    place = f" at {best.place}" if best.place else ""
    yield (
        f"the handler held the loop for {best.silence_ms:.0f} ms{place}, at most {limit_ms:.0f} are allowed; "
        "await what waits, move what computes into asyncio.to_thread, or make execute a plain def"
    )


async def _watched(case: Case, limit_ms: float) -> LoopWatch:
    async with LoopWatch(limit_ms, case.tool.source.folder) as watch:
        await call(case.tool, case.arguments(), case.context())
    return watch


class LoopWatch:
    """A heart on the loop, and a thread that looks where the loop stands when the heart stops."""

    def __init__(self, limit_ms: float, folder: Path) -> None:
        self.silence_ms = 0.0
        """The longest time in which nothing else on the loop could run."""
        self.place = ""
        """The line of the tool that held the loop, when it was seen."""
        self._limit = limit_ms / 1000
        self._folder = folder.resolve()
        self._last_beat = 0.0
        self._ended = threading.Event()

    async def __aenter__(self) -> Self:
        self._last_beat = time.perf_counter()
        self._heart = asyncio.create_task(self._beat())
        self._observer = threading.Thread(target=self._observe, args=(threading.get_ident(),), daemon=True)
        self._observer.start()
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.sleep(2 * _BEAT)
        self._heart.cancel()
        self._ended.set()
        self._observer.join()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            now = time.perf_counter()
            self.silence_ms = max(self.silence_ms, (now - self._last_beat - _BEAT) * 1000)
            self._last_beat = now

    def _observe(self, loop_thread: int) -> None:
        while not self._ended.wait(self._limit / 4):
            if not self.place and time.perf_counter() - self._last_beat > self._limit:
                # There is no public way to ask where another thread stands.
                frame = sys._current_frames().get(loop_thread)  # noqa: SLF001
                self.place = self._line_of_tool(frame) if frame else ""

    def _line_of_tool(self, frame: FrameType) -> str:
        for line in reversed(traceback.extract_stack(frame)):
            if Path(line.filename).resolve().is_relative_to(self._folder):
                return f"{Path(line.filename).name}:{line.lineno} in {line.name}: {line.line}"
        return ""
