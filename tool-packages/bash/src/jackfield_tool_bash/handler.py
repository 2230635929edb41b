"""Runs a command that the user has confirmed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from jackfield import ErrorType, Partial, ToolContext, ToolResponse, fail, ok, partial
from jackfield.live_output import LiveOutput
from jackfield_capability_types.workspace import Finished, Shell

_LAST_WORDS = 1500


async def execute(args: dict[str, Any], ctx: ToolContext) -> AsyncIterator[Partial | ToolResponse]:
    """Run the command and show its output as it grows; a command that fails is a successful answer too."""
    shell: Shell = ctx.shell
    if not args["command"].strip():
        yield fail(ErrorType.PERMANENT, "The command is blank.", suggestion="Give a command to run.")
        return
    seconds = args["timeout_seconds"]
    # A cancelled call ends only when the command's processes have ended.
    async with LiveOutput(lambda show: shell.run(args["command"], seconds=seconds, output=show)) as output:
        lines = 0
        async for text in output:
            lines += text.count("\n")
            yield partial(text, f"The command has written {lines} lines.")
        finished = await output.result()
    ctx.audit("command_run", exit_code=finished.exit_code, stopped=finished.stopped)
    yield _answer(finished)


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
