"""The threads on which engines work; the event loop never waits for one of them.

Each connection gives them at most four things to do at a time (to listen, to draft, to write down and to
say), so what waits for them is bounded by the number of connections.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def listening(do: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Short work that must not wait behind long work, or a user is noticed late."""
    return await _listeners().do(lambda: do(*args, **kwargs))


async def working(do: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Long work: loading, writing down, saying."""
    return await _workers().do(lambda: do(*args, **kwargs))


def at_leisure() -> bool:
    """Whether somebody has nothing to do, so that there is time for what is merely nice to have."""
    return _workers().free


class _Crew:
    """A few threads, and how much they have to do."""

    def __init__(self, size: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(size, name)
        self._size = size
        self._under_way = 0

    @property
    def free(self) -> bool:
        return self._under_way < self._size

    async def do(self, work: Callable[[], _T]) -> _T:
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._under_way -= 1


@cache
def _listeners() -> _Crew:
    return _Crew(1, "jackfield-listening")


@cache
def _workers() -> _Crew:
    return _Crew(max(2, os.cpu_count() or 1), "jackfield-speech")
