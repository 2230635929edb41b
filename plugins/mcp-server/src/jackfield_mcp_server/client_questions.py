"""Converts a running tool's questions to MCP requests (a form or a sampling request), and reads answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import mcp_types as t
from jackfield.contract.context import UNANSWERED, ModelAnswer, ModelRequest, UserAnswer, UserQuestion
from jackfield.registry.arguments import Arguments
from jackfield_sessions.forms import FormError, encode
from pydantic import ValidationError

from jackfield_mcp_server.caller import Context

Json = dict[str, Any]
Kind = Literal["elicitation", "sampling"]

_PRIMITIVES = frozenset({"string", "number", "integer", "boolean"})


def answerable(ctx: Context) -> frozenset[Kind]:
    """Return the kinds of questions that a client can answer: with a form for its user, or with its model."""
    capabilities = ctx.session.client_capabilities
    if capabilities is None:
        return frozenset()
    kinds: set[Kind] = set()
    declared = capabilities.elicitation
    # A client that declares no mode supports forms.
    if declared is not None and (declared.form is not None or declared.url is None):
        kinds.add("elicitation")
    if capabilities.sampling is not None:
        kinds.add("sampling")
    return frozenset(kinds)


def kind_of(request: Json) -> Kind:
    """Return the client capability that a request needs."""
    return "elicitation" if request["method"] == "elicitation/create" else "sampling"


def form_request(question: UserQuestion) -> Json | None:
    """Return a question to the user as a request; None if MCP has no form for its schema."""
    properties = question.parameters.get("properties")
    if not isinstance(properties, Mapping) or not all(map(_is_field, properties.values())):
        return None
    shown = ("type", "properties", "required")
    schema = {name: value for name, value in question.parameters.items() if name in shown}
    # No `mode`: the first protocol version with elicitation has no such member, and supports only forms.
    return {
        "method": "elicitation/create",
        "params": {"message": question.message, "requestedSchema": {**schema, "type": "object"}},
    }


def _is_field(schema: Any) -> bool:
    """Return whether a field is a primitive value, a choice or a list of choices; MCP allows no others."""
    if not isinstance(schema, Mapping):
        return False
    if schema.get("type") == "array":
        items = schema.get("items")
        return isinstance(items, Mapping) and ("enum" in items or "anyOf" in items)
    return schema.get("type") in _PRIMITIVES


def text_request(request: ModelRequest) -> Json:
    """Return a sampling request to the client's model."""
    messages = [{"role": who, "content": {"type": "text", "text": text}} for who, text in request.messages]
    params: Json = {"messages": messages, "maxTokens": request.max_tokens}
    if request.instructions:
        params["systemPrompt"] = request.instructions
    return {"method": "sampling/createMessage", "params": params}


def user_answer(request: Json, response: Any) -> UserAnswer | None:
    """Return the user's answer to a form; None if the response does not match the form's schema."""
    try:
        given = t.ElicitResult.model_validate(response)
    except ValidationError:
        return None
    if given.action == "cancel":
        return UNANSWERED
    if given.action == "decline":
        return UserAnswer("dismissed")
    values = given.content or {}
    try:
        encode("", values, Arguments({**request["params"]["requestedSchema"], "additionalProperties": False}))
    except FormError:
        return None
    return UserAnswer("submitted", values)


def model_answer(response: Any) -> ModelAnswer | None:
    """Return the text in a client's response; None if there is none."""
    try:
        given = t.CreateMessageResult.model_validate(response)
    except ValidationError:
        return None
    if not isinstance(given.content, t.TextContent) or not given.content.text.strip():
        return None
    return ModelAnswer(given.content.text.strip(), given.stop_reason == "maxTokens")


def is_usable(request: Json, response: Any) -> bool:
    """Return whether a response is a valid answer to a request."""
    if kind_of(request) == "elicitation":
        return user_answer(request, response) is not None
    return model_answer(response) is not None
