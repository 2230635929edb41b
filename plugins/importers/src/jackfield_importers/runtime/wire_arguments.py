"""Converts arguments back to the shapes that the original takes.

Arguments are closed objects. Where the original takes a map with free keys, the tool takes a list of entries
(`"x-wire": "entries"`). Where it takes an object of unknown shape, the tool takes JSON text
(`"x-wire": "json"`).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jackfield import ErrorType, ToolError


@cache
def _family() -> dict[str, Any]:
    family: dict[str, Any] = json.loads(Path(__file__).with_name("schema.json").read_text("utf-8"))
    return family


def wire_arguments(tool_id: str, args: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's arguments in the shapes that the original takes."""
    family = _family()
    parameters = family["tools"][tool_id].get("parameters", {})
    converted: dict[str, Any] = original_shape(args, parameters, family.get("$defs", {}))
    return converted


def original_shape(value: Any, schema: Any, definitions: dict[str, Any]) -> Any:
    """Return a value in the shape that the original takes; `definitions` are the schema's `$defs`."""
    if not isinstance(schema, dict):
        return value
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix("#/$defs/")]
        return original_shape(value, target, definitions)
    for branch in schema.get("anyOf", ()):
        value = original_shape(value, branch, definitions)
    if isinstance(value, dict) and "properties" in schema:
        members = schema["properties"]
        return {name: original_shape(each, members.get(name), definitions) for name, each in value.items()}
    if isinstance(value, list) and schema.get("type") == "array":
        value = [original_shape(each, schema.get("items"), definitions) for each in value]
        return _entries(value) if schema.get("x-wire") == "entries" else value
    return _parsed(value) if isinstance(value, str) and schema.get("x-wire") == "json" else value


def _entries(value: list[Any]) -> Any:
    if not all(isinstance(each, dict) and each.keys() == {"name", "value"} for each in value):
        return value
    return {each["name"]: each["value"] for each in value}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ToolError(
            ErrorType.PERMANENT,
            "An argument that takes JSON text is not JSON.",
            suggestion="Write the value as JSON and call again.",
        ) from None
