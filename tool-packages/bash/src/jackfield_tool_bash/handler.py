"""Runs a command that the user has confirmed."""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok
from jackfield_capability_types.workspace import Finished, Shell

_LAST_WORDS = 1500


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Run the command; a command that fails is a successful answer too."""
    shell: Shell = ctx.shell
    if not args["command"].strip():
        return fail(ErrorType.PERMANENT, "The command is blank.", suggestion="Give a command to run.")

    async def progress(lines: int) -> None:
        await ctx.progress(f"The command has written {lines} lines.")

    finished = await shell.run(args["command"], seconds=args["timeout_seconds"], progress=progress)
    ctx.audit("command_run", exit_code=finished.exit_code, stopped=finished.stopped)
    return _answer(finished)


def _answer(finished: Finished) -> ToolResponse:
    if finished.exit_code is None:
        return fail(
            ErrorType.TRANSIENT,
            f"The command was stopped after {finished.seconds:.0f} seconds: {finished.stopped}.",
            partial_side_effects=True,
            suggestion="Check what it has already done. Then ask for more time, or do less at once.",
            details={"output": finished.output[-_LAST_WORDS:]},
        )
    data: dict[str, Any] = {
        "output": finished.output,
        "exit_code": finished.exit_code,
        "seconds": round(finished.seconds, 3),
        "isolated": finished.isolated,
    }
    if finished.left_out:
        data["left_out"] = finished.left_out
    return ok(data)
