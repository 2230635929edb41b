"""The form in which the model has to write a decision: one tool with its arguments, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NONE = "none"
"""What the model chooses when no tool is needed."""

_KEPT = ("type", "enum", "const", "required", "minItems", "maxItems", "minimum", "maximum")
_LONGEST = 64
"""A bound on repetition makes the grammar as long as the bound; longer ones are left to validation."""


def decision(tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """JSON Schema of `{"tool": ..., "arguments": ...}` for these tools, by their parameters."""
    calls = [_object({"tool": {"const": tool}, "arguments": lowered(schema)}) for tool, schema in tools.items()]
    return {"anyOf": [*calls, _object({"tool": {"const": NONE}})]}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def lowered(schema: Any) -> Any:
    """A schema as a grammar can hold it: wider, never narrower; validation decides in the end."""
    if not isinstance(schema, Mapping):
        return {}
    kept: dict[str, Any] = {name: schema[name] for name in _KEPT if name in schema and _short(name, schema)}
    if "properties" in schema:
        kept["properties"] = {name: lowered(each) for name, each in schema["properties"].items()}
        kept["additionalProperties"] = False
    if "items" in schema:
        kept["items"] = lowered(schema["items"])
    for choice in ("anyOf", "oneOf"):
        if isinstance(schema.get(choice), Sequence):
            kept["anyOf"] = [lowered(each) for each in schema[choice]]
    return kept


def _short(name: str, schema: Mapping[str, Any]) -> bool:
    return name not in ("minItems", "maxItems") or schema[name] <= _LONGEST
