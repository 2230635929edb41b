"""One handler run as the kernel runs it, outside any session."""

from __future__ import annotations

import asyncio
from typing import Any

from jackfield import ToolContext, ToolResponse
from jackfield.registry.invoke import Deadlines, Handler, run_handler


class _Alone:
    """A call that nobody but the clock stops."""

    def __init__(self) -> None:
        self.stopped = ""
        self.task: asyncio.Task[Any] | None = None
        self.took = self.ran_for = 0.0


async def invoke(
    handler: Handler, args: dict[str, Any], ctx: ToolContext, *, timeout_ms: int, writes: bool
) -> ToolResponse:
    """Run a handler to its answer, whatever it does."""
    deadlines = Deadlines(asyncio.get_running_loop())
    return await run_handler(
        handler, args, ctx, _Alone(), deadlines, timeout=timeout_ms / 1000, writes=writes
    )
