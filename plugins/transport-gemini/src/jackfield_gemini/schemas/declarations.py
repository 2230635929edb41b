"""A tool as Gemini declares it: with its own kind of schema, or with JSON Schema as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.offers import Adapted
from jackfield_schemas import read, wire_name
from jackfield_schemas.losses import Losses

from jackfield_gemini.schemas.native import NativeWriter

# The service takes 128 characters by now; older models took 63.
_LONGEST = 63


def native(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    """`parameters` as Gemini's own schema with its upper-case types; left out where there is none."""
    losses = Losses()
    writer = NativeWriter(read(parameters, losses), losses)
    written = writer.root()
    told = " ".join((description.strip(), *writer.told_of_root)).strip()
    declaration: dict[str, Any] = {"name": gemini_name(tool_id), "description": told}
    if written is not None:
        declaration["parameters"] = written
    return Adapted(declaration, losses.found())


def as_json_schema(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    """`parametersJsonSchema`: the schema as it stands, of an object in any case."""
    schema = dict(parameters)
    if schema.get("type") != "object":
        schema = {"type": "object"} | {key: value for key, value in schema.items() if key != "type"}
    return Adapted({"name": gemini_name(tool_id), "description": description, "parametersJsonSchema": schema})


def gemini_name(tool_id: str) -> str:
    """The tool's name in Gemini's alphabet."""
    legal, letters = r"[a-zA-Z_][a-zA-Z0-9_.:-]*", r"a-zA-Z0-9_.:\-"
    return wire_name(tool_id, legal=legal, letters=letters, longest=_LONGEST)
