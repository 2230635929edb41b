"""Criteria for correct calls and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.agent.dataset import agent_test_module


def equal(found: Any, wanted: Any) -> bool:
    """Return whether a value is the expected one: times as instants, texts without case and punctuation."""
    try:
        return bool(agent_test_module("agent_requests").same(found, wanted))
    except (ValueError, AttributeError):
        return False  # It is not a date-time, or a list of something other than texts.


def exact(found: Mapping[str, Any], wanted: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Return whether the arguments are the expected ones; a default of the schema may be absent."""
    named = {
        name: told["default"] for name, told in schema.get("properties", {}).items() if "default" in told
    }
    return all(
        equal(found.get(name, named.get(name)), wanted.get(name, named.get(name)))
        for name in {*found, *wanted}
    )


def differing(found: Mapping[str, Any], wanted: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Return the given arguments that differ from the expected ones."""
    properties = schema.get("properties", {})
    return [
        name
        for name, value in found.items()
        if not equal(value, wanted.get(name, properties.get(name, {}).get("default")))
    ]


def holds(answer: str, facts: list[str]) -> bool:
    """Return whether an answer contains one of several strings, ignoring case."""
    said = answer.casefold()
    return any(fact.casefold() in said for fact in facts)
