"""Running a standard test that awaits: it comes to an end, and what is refused is refused in a sentence."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from jackfield import ErrorType, ToolError

from jackfield_testkit.store_contract.verdict import give_up, holds, same

_Bench = TypeVar("_Bench")
_Trial = Callable[[Any, _Bench], Awaitable[None]]


def patiently(subject: str, seconds: float) -> Callable[[_Trial[_Bench]], Callable[[Any, _Bench], None]]:
    """Run tests on a loop of their own, and end one in which the subject makes it wait for ever."""

    def on_a_loop(test: _Trial[_Bench]) -> Callable[[Any, _Bench], None]:
        @functools.wraps(test)
        def run(*given: Any, **named: Any) -> None:
            async def bounded() -> None:
                async with asyncio.timeout(seconds):
                    await test(*given, **named)

            try:
                asyncio.run(bounded())
            except TimeoutError:
                give_up(f"{subject} did not answer within {seconds:.0f} s")

        return run

    return on_a_loop


async def refused(work: Awaitable[Any], expected: ErrorType, what: str) -> ToolError:
    """The error with which something has to fail."""
    try:
        came: object = await work
    except ToolError as error:
        same(error.type, expected, f"the type of failure of {what}")
        holds(error.message, f"{what} failed without a sentence")
        return error
    except Exception as error:  # noqa: BLE001 - whatever it is, the test names it
        came = error
    return give_up(f"{what} has to fail with {expected}, and came to {came!r:.200}")
