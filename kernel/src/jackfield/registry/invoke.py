"""Running one handler: a deadline, exactly one answer, and nothing of its insides in it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

from jackfield.contract.context import ToolContext
from jackfield.contract.errors import ErrorType, ToolError
from jackfield.contract.response import ToolResponse, fail, fail_from

Handler = Callable[[dict[str, Any], ToolContext], Awaitable[ToolResponse]]

_log = logging.getLogger(__name__)


def as_handler(execute: Callable[..., Any]) -> Handler:
    """`execute` as a coroutine function; a plain one runs in a thread, where it cannot block the loop."""
    if inspect.iscoroutinefunction(execute):
        return cast("Handler", execute)

    async def in_thread(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        return cast("ToolResponse", await asyncio.to_thread(execute, args, ctx))

    return in_thread


async def invoke(
    handler: Handler, args: dict[str, Any], ctx: ToolContext, *, timeout_ms: int, writes: bool
) -> ToolResponse:
    """Run a handler to its answer, whatever it does; only a cancellation from outside passes through.

    `writes` decides what is said of a handler that did not come to its end: it may have changed things.
    """
    try:
        async with asyncio.timeout(timeout_ms / 1000) as deadline:
            answer = await handler(args, ctx)
    except ToolError as error:
        return fail_from(error)
    except TimeoutError:
        if not deadline.expired():
            return _crashed("TimeoutError")
        return fail(
            ErrorType.TRANSIENT,
            f"The tool did not answer within {timeout_ms} ms and was stopped.",
            retryable=not writes,
            partial_side_effects=writes,
        )
    except Exception as error:  # noqa: BLE001 - the handler is somebody else's code; the model gets one answer
        return _crashed(type(error).__name__, error)
    if not isinstance(answer, ToolResponse):
        return _crashed(f"it returned {type(answer).__name__} instead of ok(...) or fail(...)")
    return answer


def _crashed(cause: str, error: BaseException | None = None) -> ToolResponse:
    # The cause is for the operator; what reaches the model must not carry paths, queries or secrets.
    _log.error("tool handler failed: %s", cause, exc_info=error)
    return fail(ErrorType.INTERNAL, "The tool failed for a reason of its own.", partial_side_effects=True)
