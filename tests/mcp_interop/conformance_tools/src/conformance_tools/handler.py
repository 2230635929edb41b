"""The handlers: what the suite checks is what the server makes of them."""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok
from jackfield.contract.context import ModelRequest
from jackfield_capability_types.images import ImageOrder

SECONDS = 20.0
"""How long a question waits for its answer."""

TEXT = {"type": "string", "maxLength": 200}


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


async def test_confirmation(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Return the arguments, once the user has approved the call."""
    return ok({"approved": args})


async def _show(ctx: ToolContext, *names: str) -> ToolResponse:
    return ok({"samples": list(names)})


async def test_audio_content(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Show a sound."""
    return await _show(ctx, "sound")


async def test_embedded_resource(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Show a text."""
    return await _show(ctx, "text")


async def test_multiple_content_types(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Show a picture and a text."""
    return await _show(ctx, "picture", "text")


async def test_trigger_tool_change(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Change the list of tools."""
    ctx.samples.change_tools()
    return ok({"changed": True})


async def _ask(ctx: ToolContext, message: str, **properties: Any) -> ToolResponse:
    """Ask the user with a form, and return the answer."""
    schema = {"type": "object", "properties": properties, "required": [], "additionalProperties": False}
    answer = await ctx.ask_user(message, schema, asked_by="the tool", seconds=SECONDS)
    if answer.outcome == "unanswered":
        return fail(ErrorType.PERMANENT, "The user cannot be asked.")
    return ok({"outcome": answer.outcome, "values": dict(answer.values), "state": "state-ok"})


async def _compose(ctx: ToolContext, prompt: str) -> ToolResponse:
    """Ask the model, and return its text."""
    answer = await ctx.ask_model(ModelRequest("", [("user", prompt)], 100, SECONDS))
    if answer is None:
        return fail(ErrorType.PERMANENT, "No model answers.")
    return ok({"text": answer.text})


async def test_elicitation(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Ask the user for two texts."""
    return await _ask(ctx, args["message"], username=TEXT, email=TEXT)


async def test_elicitation_sep1034_defaults(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Ask the user with a form that suggests every value."""
    return await _ask(
        ctx,
        "Please check your details.",
        name={**TEXT, "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )


async def test_elicitation_sep1330_enums(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Ask the user to choose, with every kind of choice."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
    return await _ask(
        ctx,
        "Please choose.",
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )


async def _name(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    return await _ask(ctx, "What is your name?", name=TEXT)


test_input_required_result_elicitation = test_streaming_elicitation = _name


async def _confirm(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    return await _ask(ctx, "Please confirm.", ok={"type": "boolean"})


test_input_required_result_request_state = test_input_required_result_tampered_state = _confirm


async def test_input_required_result_multi_round(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Ask the user twice."""
    first = await _ask(ctx, "Step 1: What is your name?", name=TEXT)
    return first if not first.ok else await _ask(ctx, "Step 2: What is your favorite color?", color=TEXT)


async def test_input_required_result_sampling(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Ask the model."""
    return await _compose(ctx, "What is the capital of France?")


test_missing_capability = test_input_required_result_sampling


async def test_sampling(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Ask the model what the caller wants."""
    return await _compose(ctx, args["prompt"])


async def test_input_required_result_capabilities(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Ask the user, or the model if the user cannot be asked."""
    asked = await _ask(ctx, "What is your name?", name=TEXT)
    return asked if asked.ok else await _compose(ctx, "Invent a name.")


async def test_header_parameters(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Return the arguments, some of which the client repeats in headers."""
    return ok(args)


async def json_schema_2020_12_tool(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Return the arguments, whose schema uses most of JSON Schema 2020-12."""
    return ok(args)
