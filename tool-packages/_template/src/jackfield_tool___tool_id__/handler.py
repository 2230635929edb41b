"""Counts words; replace this with your tool."""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Run one call; `args` are validated, with defaults; `ctx` gives access to session and capabilities."""
    words = len(args["text"].split())
    if words == 0:
        # Return an expected failure, which the model can handle, instead of raising it.
        return fail(ErrorType.PERMANENT, "The text has no words.", suggestion="Ask the user for the text.")
    ctx.audit("counted", words=words)
    return ok({"words": words, "seconds": -(-words * 60 // args["words_per_minute"])})
