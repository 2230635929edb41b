"""Counts words; replace it with what your tool does."""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Answer one call; `args` are valid and complete, `ctx` gives the session and capabilities."""
    words = len(args["text"].split())
    if words == 0:
        # An outcome the model should know how to handle is returned, not raised.
        return fail(ErrorType.PERMANENT, "The text holds no words.", suggestion="Ask the user for the text.")
    ctx.audit("counted", words=words)
    return ok({"words": words, "seconds": -(-words * 60 // args["words_per_minute"])})
