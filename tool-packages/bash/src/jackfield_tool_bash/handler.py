"""Runs a command that the user has confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from jackfield import ErrorType, Partial, ToolContext, ToolResponse, fail, ok, partial
from jackfield_capability_types.workspace import Finished, Shell

_LAST_WORDS = 1500

_SHOWN_CHARACTERS = 64 * 1024
"""How much of the output is shown while the command runs; the kernel shows no more."""


async def execute(args: dict[str, Any], ctx: ToolContext) -> AsyncIterator[Partial | ToolResponse]:
    """Run the command and show its output as it grows; a command that fails is a successful answer too."""
    shell: Shell = ctx.shell
    if not args["command"].strip():
        yield fail(ErrorType.PERMANENT, "The command is blank.", suggestion="Give a command to run.")
        return
    shown = _ShownOutput()
    running = asyncio.ensure_future(
        shell.run(args["command"], seconds=args["timeout_seconds"], output=shown.add)
    )
    running.add_done_callback(shown.end)
    try:
        lines = 0
        while text := await shown.next():
            lines += text.count("\n")
            yield partial(text, f"The command has written {lines} lines.")
        finished = await running
    finally:
        # If the call is cancelled, it ends when the processes of the command have ended.
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    ctx.audit("command_run", exit_code=finished.exit_code, stopped=finished.stopped)
    yield _answer(finished)


class _ShownOutput:
    """The output that was written and not yet shown; what exceeds the limit is not shown."""

    def __init__(self) -> None:
        self._room = _SHOWN_CHARACTERS
        self._text = ""
        self._changed = asyncio.Event()
        self._ended = False

    def add(self, text: str) -> None:
        """Add what the command has written."""
        self._text += text[: self._room]
        self._room -= min(len(text), self._room)
        self._changed.set()

    def end(self, _: asyncio.Future[Finished]) -> None:
        """Note that nothing follows."""
        self._ended = True
        self._changed.set()

    async def next(self) -> str:
        """Wait for further output; return an empty string when there is none."""
        while not self._text and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        text, self._text = self._text, ""
        return text


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
