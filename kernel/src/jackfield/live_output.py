"""The live output of running work, for handlers that show it as partial results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Generic, Self, TypeVar

from jackfield.partial_results import MAX_BYTES

_T = TypeVar("_T")


class LiveOutput(Generic[_T]):
    """Runs work that passes its text to a function; yields the text, and keeps the result.

    Use it as `async with LiveOutput(work) as output`. The loop `async for text in output` ends with the work;
    then `await output.result()` returns what the work returned, or raises what it raised. Leaving the block
    before the work has ended cancels the work.
    """

    def __init__(self, work: Callable[[Callable[[str], None]], Coroutine[Any, Any, _T]]) -> None:
        """`work` is called with the function that takes its text."""
        self._work = work
        self._room = MAX_BYTES
        self._text = ""
        self._changed = asyncio.Event()
        self._running: asyncio.Task[_T] | None = None

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._work(self._add))
        self._running.add_done_callback(lambda _: self._changed.set())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def __aiter__(self) -> AsyncIterator[str]:
        while self._running is not None:
            # Read before the text, so that text written just before the end is still yielded.
            ended = self._running.done()
            text, self._text = self._text, ""
            if text:
                yield text
            elif ended:
                return
            else:
                self._changed.clear()
                await self._changed.wait()

    async def result(self) -> _T:
        """Wait for the work and return its result."""
        if self._running is None:
            raise RuntimeError("the work has not started: use `async with`")
        return await self._running

    def _add(self, text: str) -> None:
        # More would not be shown anyway, so it is not kept.
        self._text += text[: self._room]
        self._room -= min(len(text), self._room)
        self._changed.set()
