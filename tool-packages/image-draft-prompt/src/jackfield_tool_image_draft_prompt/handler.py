"""The tool's entry: plain and synchronous, because it only computes."""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok

from jackfield_tool_image_draft_prompt.drafting import drafts


def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:  # noqa: ARG001 - the contract's signature
    """Prompts for a brief; fails only when the brief says nothing."""
    if not any(each.isalnum() for each in args["brief"]):
        return fail(
            ErrorType.PERMANENT,
            "The brief says nothing.",
            suggestion="Ask the user what the picture should show.",
        )
    return ok({"variants": drafts(args)})
