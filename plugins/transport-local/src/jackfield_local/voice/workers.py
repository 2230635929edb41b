"""The threads on which engines work; the event loop never waits for one of them.

Each connection gives them at most four things to do at a time (to listen, to draft, to write down and to
say), so what waits for them is bounded by the number of connections.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_SIZE = max(2, os.cpu_count() or 1)
_listeners = ThreadPoolExecutor(1, "jackfield-listening")
_workers = ThreadPoolExecutor(_SIZE, "jackfield-speech")
_work: set[asyncio.Future[Any]] = set()


async def listening(do: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Short work that must not wait behind long work, or a user is noticed late."""
    return await asyncio.get_running_loop().run_in_executor(_listeners, partial(do, *args, **kwargs))


async def working(do: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Long work: loading, writing down, saying."""
    work = asyncio.get_running_loop().run_in_executor(_workers, partial(do, *args, **kwargs))
    _work.add(work)
    work.add_done_callback(_work.discard)
    return await work


def at_leisure() -> bool:
    """Whether a thread has nothing to do, so that there is time for what is merely nice to have."""
    return len(_work) < _SIZE
