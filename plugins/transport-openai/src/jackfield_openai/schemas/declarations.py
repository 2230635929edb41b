"""A tool as OpenAI's APIs declare it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.offers import Adapted
from jackfield_schemas import read, wire_name
from jackfield_schemas.losses import Losses

from jackfield_openai.schemas.limits import beyond
from jackfield_openai.schemas.plain import plain_parameters
from jackfield_openai.schemas.strict import NotStrictError, StrictWriter


def chat(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    """A function of chat completions."""
    losses = Losses()
    function = _function(tool_id, description, plain_parameters(parameters, losses))
    return Adapted({"type": "function", "function": function}, losses.found())


def realtime(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    """A function of a Realtime session, which has no object around it."""
    losses = Losses()
    function = _function(tool_id, description, plain_parameters(parameters, losses))
    return Adapted({"type": "function", **function}, losses.found())


def strict(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    """A function of chat completions whose arguments the service itself keeps to the schema.

    Where strict mode would refuse arguments that the schema accepts, the function is declared without it.
    """
    losses = Losses()
    try:
        written = StrictWriter(read(parameters, losses), losses).root()
        if reason := beyond(written):
            raise NotStrictError((), reason)
    except NotStrictError as error:
        losses = Losses()
        losses.add(error.path, f"strict mode is given up: {error.why}")
        function = _function(tool_id, description, plain_parameters(parameters, losses))
        return Adapted({"type": "function", "function": {**function, "strict": False}}, losses.found())
    function = _function(tool_id, description, written)
    return Adapted({"type": "function", "function": {**function, "strict": True}}, losses.found())


def _function(tool_id: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    name = wire_name(tool_id, legal=r"[a-zA-Z0-9_-]+", letters=r"a-zA-Z0-9_\-", longest=64)
    return {"name": name, "description": description, "parameters": parameters}
