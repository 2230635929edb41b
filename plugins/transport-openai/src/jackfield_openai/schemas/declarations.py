"""Tool declarations in the form of OpenAI's APIs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.offers import Adapted
from jackfield_schemas.names import provider_tool_name
from jackfield_schemas.parser import parse_schema
from jackfield_schemas.schema_writer import LoweringReport

from jackfield_openai.schemas.plain import plain_parameters
from jackfield_openai.schemas.strict import NotStrictError, StrictWriter, beyond


def chat(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    """Declare a function for chat completions."""
    report = LoweringReport()
    function = _function(tool_id, description, plain_parameters(parameters, report))
    return Adapted({"type": "function", "function": function}, report.lowerings())


def realtime(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    """Declare a function for a Realtime session."""
    report = LoweringReport()
    function = _function(tool_id, description, plain_parameters(parameters, report))
    return Adapted({"type": "function", **function}, report.lowerings())


def strict(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    """Declare a function for chat completions whose arguments the service makes conform to the schema.

    Where strict mode would reject arguments that the schema accepts, the function is declared without it.
    """
    report = LoweringReport()
    try:
        written = StrictWriter(parse_schema(parameters, report), report).root()
        if reason := beyond(written):
            raise NotStrictError((), reason)
    except NotStrictError as error:
        report = LoweringReport()
        report.add(error.path, f"strict mode is not used: {error.why}")
        function = _function(tool_id, description, plain_parameters(parameters, report))
        return Adapted({"type": "function", "function": {**function, "strict": False}}, report.lowerings())
    function = _function(tool_id, description, written)
    return Adapted({"type": "function", "function": {**function, "strict": True}}, report.lowerings())


def _function(tool_id: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    name = provider_tool_name(tool_id, legal=r"[a-zA-Z0-9_-]+", letters=r"a-zA-Z0-9_\-", longest=64)
    return {"name": name, "description": description, "parameters": parameters}
