"""The handler: a plain function, because it only computes."""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok

from jackfield_tool_image_draft_prompt.variants import prompt_variants


def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:  # noqa: ARG001 - the contract's signature
    """Return prompts for a brief; fails only for an empty brief."""
    if not any(each.isalnum() for each in args["brief"]):
        return fail(
            ErrorType.PERMANENT,
            "The brief is empty.",
            suggestion="Ask the user what the picture should show.",
        )
    return ok({"variants": prompt_variants(args)})
