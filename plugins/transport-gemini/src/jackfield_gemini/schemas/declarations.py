"""Tool declarations for Gemini: with its native schema, or with unchanged JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.offers import Adapted
from jackfield_schemas.names import provider_tool_name
from jackfield_schemas.parser import parse_schema
from jackfield_schemas.schema_writer import LoweringReport

from jackfield_gemini.schemas.native import NativeWriter

# The service accepts 128 characters now; older models accepted 63.
_MAX_LENGTH = 63


def native(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    """Declare a tool with Gemini's native schema; `parameters` is omitted if there are none."""
    report = LoweringReport()
    writer = NativeWriter(parse_schema(parameters, report), report)
    written = writer.root()
    notes = " ".join((description.strip(), *writer.root_notes)).strip()
    declaration: dict[str, Any] = {"name": gemini_name(tool_id), "description": notes}
    if written is not None:
        declaration["parameters"] = written
    return Adapted(declaration, report.lowerings())


def as_json_schema(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    """Declare a tool with `parametersJsonSchema`: the unchanged schema, with an object at the root."""
    schema = dict(parameters)
    if schema.get("type") != "object":
        schema = {"type": "object"} | {key: value for key, value in schema.items() if key != "type"}
    return Adapted({"name": gemini_name(tool_id), "description": description, "parametersJsonSchema": schema})


def gemini_name(tool_id: str) -> str:
    """Return the tool's name in Gemini's alphabet."""
    legal, letters = r"[a-zA-Z_][a-zA-Z0-9_.:-]*", r"a-zA-Z0-9_.:\-"
    return provider_tool_name(tool_id, legal=legal, letters=letters, longest=_MAX_LENGTH)
