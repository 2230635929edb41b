"""The text of an imported tool's confirmation card, if one sentence can show every argument."""

from __future__ import annotations

from typing import Any

from jackfield_importers.names import words
from jackfield_importers.schema_conversion import WIRE

_SIMPLE = {"string", "integer", "number", "boolean"}


def preview_template(tool_id: str, summary: str, parameters: dict[str, Any]) -> str | None:
    """Return the template of the card; None if it cannot show every argument of every call.

    A template has the same placeholders for every call, so an optional argument would be left out or appear
    as a gap. Without a template, the card shows the raw arguments.
    """
    members = parameters.get("properties", {})
    required = parameters.get("required", ())
    if not all(name in required and _is_shown(name, schema) for name, schema in members.items()):
        return None
    asked = summary.replace("{", "(").replace("}", ")").rstrip(".?!")
    shown = ", ".join(f"{words(name)} {{{name}}}" for name in members)
    request = _imperative(tool_id, asked)
    text = f"{request or asked}: {shown}" if shown else request or asked
    return f"{text}?" if request else f"{text}. Continue?"


def _is_shown(name: str, schema: Any) -> bool:
    """Return whether a placeholder shows the whole value."""
    if not name.isidentifier() or not isinstance(schema, dict) or WIRE in schema:
        return False
    if schema.get("type") == "array":
        items = schema.get("items")
        return "prefixItems" not in schema and isinstance(items, dict) and _is_simple(items)
    return _is_simple(schema)


def _is_simple(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    return isinstance(kind, str) and kind in _SIMPLE and WIRE not in schema


def _imperative(tool_id: str, summary: str) -> str | None:
    """Return the summary as a request if it starts with the verb of the id: `add_pet`, "Adds a pet"."""
    verb = tool_id.partition("_")[0]
    first, _, rest = summary.partition(" ")
    forms = {verb, f"{verb}s", f"{verb}es"} | ({f"{verb[:-1]}ies"} if verb.endswith("y") else set())
    return f"{verb.capitalize()} {rest}" if rest and first.lower() in forms else None
