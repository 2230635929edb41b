"""When what the agent did is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.agent.material import beside


def equal(found: Any, wanted: Any) -> bool:
    """Whether a value is the one that was meant: moments as instants, texts without case and final marks."""
    try:
        return bool(beside("agent_requests").same(found, wanted))
    except (ValueError, AttributeError):
        return False  # It is no moment, or a list of something else than texts.


def exact(found: Mapping[str, Any], wanted: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether the arguments are those that were meant; a value that is the schema's default may be absent."""
    named = {
        name: told["default"] for name, told in schema.get("properties", {}).items() if "default" in told
    }
    return all(
        equal(found.get(name, named.get(name)), wanted.get(name, named.get(name)))
        for name in {*found, *wanted}
    )


def differing(found: Mapping[str, Any], wanted: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """The arguments that were given and are not those that were meant."""
    properties = schema.get("properties", {})
    return [
        name
        for name, value in found.items()
        if not equal(value, wanted.get(name, properties.get(name, {}).get("default")))
    ]


def holds(answer: str, facts: list[str]) -> bool:
    """Whether an answer has one of several strings in it, whatever its case."""
    said = answer.casefold()
    return any(fact.casefold() in said for fact in facts)
