"""Converts arguments back to the shapes of the original.

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
    """Return the arguments of a tool in the shapes of the original."""
    converted: dict[str, Any] = _convert(args, _family()["tools"][tool_id].get("parameters", {}))
    return converted


def _convert(value: Any, schema: Any) -> Any:
    if not isinstance(schema, dict):
        return value
    if "$ref" in schema:
        return _convert(value, _family()["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    for branch in schema.get("anyOf", ()):
        value = _convert(value, branch)
    if isinstance(value, dict) and "properties" in schema:
        members = schema["properties"]
        return {name: _convert(each, members.get(name)) for name, each in value.items()}
    if isinstance(value, list) and schema.get("type") == "array":
        value = [_convert(each, schema.get("items")) for each in value]
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
