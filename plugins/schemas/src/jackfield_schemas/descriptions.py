"""Sentences that describe constraints to the model."""

from __future__ import annotations

import json
from typing import Any

from jackfield_schemas.shapes import (
    ArrayShape,
    BooleanShape,
    NumberShape,
    ObjectShape,
    Option,
    RecursiveRef,
    Shape,
    StringShape,
)

_MAX_LENGTH = 240


def shown(value: Any) -> str:
    """Return a value as short JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def one_of(values: tuple[Any, ...]) -> str:
    """Return the sentence for an enumeration; a long one is cut."""
    if len(values) == 1:
        return _short(f"Must be {shown(values[0])}.", "Only one value is accepted.")
    listed = ", ".join(map(shown, values[:40]))
    more = ", ..." if len(values) > 40 else ""
    return _short(f"One of {listed}{more}.", "Only certain values are accepted.")


def members_together(rule: Any) -> str:
    """Return the sentence for `dependentRequired`."""
    if not isinstance(rule, dict):
        return ""
    lines = []
    for name, others in rule.items():
        if isinstance(others, list) and others:
            lines.append(f"When {shown(name)} is given, {', '.join(map(shown, others))} must be given too.")
    return " ".join(lines)


def rule(keyword: str, value: Any) -> str:
    """Return the sentence for a constraint without a short name, with the schema itself if it is short."""
    opening, otherwise = _RULES[keyword]
    return _short(f"{opening} {shown(value)}.", otherwise)


_RULES = {
    "not": ("Must not match the schema", "Some values are excluded."),
    "if": ("Conditional rule:", "What is accepted depends on the values given."),
    "contains": ("At least one item must match the schema", "At least one item must be of a certain kind."),
    "propertyNames": ("Member names must match the schema", "Not every member name is accepted."),
    "patternProperties": ("Members by name pattern:", "Values depend on the member's name."),
    "dependentSchemas": ("Rules when a member is given:", "What is accepted depends on the members given."),
    "unevaluatedProperties": ("Other members:", "Other members are restricted."),
    "unevaluatedItems": ("Other items:", "Other items are restricted."),
    "$dynamicRef": ("Must match the schema", "Only certain values are accepted."),
}


_KINDS: dict[type[Option], str] = {
    StringShape: "a string",
    NumberShape: "a number",
    BooleanShape: "true or false",
    ArrayShape: "a list",
    ObjectShape: "an object",
    RecursiveRef: "an object of the same kind",
}


def kind(shape: Shape) -> str:
    """Return the types of a value in a few words."""
    if shape.accepts_any:
        return "any value"
    words = [
        "a whole number" if isinstance(option, NumberShape) and option.integer else _KINDS[type(option)]
        for option in shape.options
    ]
    if shape.null:
        words.append("null")
    return " or ".join(dict.fromkeys(words)) or "nothing"


def in_order(first: tuple[Shape, ...]) -> str:
    """Return the sentence for the first items of a tuple."""
    notes = [shape.annotations.description.rstrip(".") or kind(shape) for shape in first]
    return _short(
        f"The first items in order: {'; '.join(notes)}.", "Each of the first items has its own type."
    )


def other_members(others: Shape) -> str:
    """Return the sentence for properties that a schema does not name."""
    return f"Members with other names are allowed; each is {kind(others)}."


def given_together(alternatives: list[list[str]]) -> str:
    """Return the sentence for alternatives that differ in their required properties."""
    distinct = list(dict.fromkeys(", ".join(names) for names in alternatives))
    if len(distinct) < 2 or not all(distinct):
        return ""
    return _short(f"Must be given: {'; or '.join(distinct)}.", "")


def _short(sentence: str, otherwise: str) -> str:
    return sentence if len(sentence) <= _MAX_LENGTH else otherwise
