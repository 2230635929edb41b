"""The handlers: what the suite checks is what the server makes of them."""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok
from jackfield_capability_types.images import ImageOrder


async def test_simple_text(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Return a text."""
    return ok("This is a simple text response for testing.")


async def test_image_content(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Show a picture."""
    (image,) = await ctx.images.generate(ImageOrder("A square of one colour.", quality="draft"))
    return ok({"images": [{"id": image.id, "size": image.size}]})


async def test_error_handling(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Fail."""
    return fail(ErrorType.PERMANENT, "This tool intentionally returns an error for testing")


async def test_tool_with_progress(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Report progress three times."""
    for fraction in (0.0, 0.5, 1.0):
        await ctx.progress("working", fraction=fraction)
    return ok({"done": True})


async def _log(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.progress(message)
    return ok({"done": True})


test_tool_with_logging = test_logging_tool = _log


async def _answer(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Return the arguments, once the user has approved the call."""
    return ok({"approved": args, "state": "state-ok"})


test_elicitation = test_streaming_elicitation = test_input_required_result_elicitation = _answer
test_input_required_result_request_state = test_input_required_result_tampered_state = _answer
test_input_required_result_capabilities = _answer


async def test_header_parameters(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Return the arguments, some of which the client repeats in headers."""
    return ok(args)


async def json_schema_2020_12_tool(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Return the arguments, whose schema uses most of JSON Schema 2020-12."""
    return ok(args)
