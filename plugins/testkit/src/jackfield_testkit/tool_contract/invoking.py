"""One handler run as the kernel runs it, outside any session and without policies."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from jackfield import ToolContext, ToolResponse
from jackfield.registry.invoke import Deadlines, Handler, run_handler


class _Alone:
    """A call that only its deadline stops."""

    def __init__(self) -> None:
        self.stopped = ""
        self.task = asyncio.current_task()
        self.runner: asyncio.Task[Any] | None = None
        self.deadline = math.inf
        self.took = self.ran_for = 0.0


async def invoke(
    handler: Handler, args: dict[str, Any], ctx: ToolContext, *, timeout_ms: int, writes: bool
) -> ToolResponse:
    """Run a handler to its answer, whatever it does; a tool that asks its user first runs as if approved."""
    deadlines, call = Deadlines(asyncio.get_running_loop()), _Alone()
    deadlines.running[call] = None
    deadlines.arm()
    try:
        return await run_handler(handler, args, ctx, call, timeout=timeout_ms / 1000, writes=writes)
    finally:
        del deadlines.running[call]
