"""Constraints in words, for the description that a model reads."""

from __future__ import annotations

import json
from typing import Any

from jackfield_schemas.shapes import Again, Flag, Listing, Number, Option, Record, Shape, Text

_LONGEST = 240


def shown(value: Any) -> str:
    """A value as short JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def one_of(values: tuple[Any, ...]) -> str:
    """The sentence for an enumeration; of a long one, the beginning."""
    if len(values) == 1:
        return _short(f"Must be {shown(values[0])}.", "Only one value is accepted.")
    listed = ", ".join(map(shown, values[:40]))
    more = ", ..." if len(values) > 40 else ""
    return _short(f"One of {listed}{more}.", "Only certain values are accepted.")


def members_together(rule: Any) -> str:
    """The sentence for `dependentRequired`."""
    if not isinstance(rule, dict):
        return ""
    lines = []
    for name, others in rule.items():
        if isinstance(others, list) and others:
            lines.append(f"When {shown(name)} is given, {', '.join(map(shown, others))} must be given too.")
    return " ".join(lines)


def rule(keyword: str, value: Any) -> str:
    """The sentence for a constraint that has no short name, with the schema itself if that is short."""
    opening, otherwise = _RULES[keyword]
    return _short(f"{opening} {shown(value)}.", otherwise)


_RULES = {
    "not": ("Must not match the schema", "Some values are excluded."),
    "if": ("Conditional rule:", "What is accepted depends on the values given."),
    "contains": ("At least one item must match the schema", "Some item must be of a certain kind."),
    "propertyNames": ("Member names must match the schema", "Not every member name is accepted."),
    "patternProperties": ("Members by the pattern of their name:", "Values depend on the member's name."),
    "dependentSchemas": ("Rules when a member is given:", "What is accepted depends on the members given."),
    "unevaluatedProperties": ("Other members:", "Other members are restricted."),
    "unevaluatedItems": ("Other items:", "Other items are restricted."),
    "$dynamicRef": ("Must match the schema", "Only certain values are accepted."),
}


_KINDS: dict[type[Option], str] = {
    Text: "a string", Number: "a number", Flag: "true or false", Listing: "a list", Record: "an object",
    Again: "an object of the same kind",
}  # fmt: skip


def kind(shape: Shape) -> str:
    """What a value is, in a few words."""
    if shape.free:
        return "any value"
    words = [
        "a whole number" if isinstance(option, Number) and option.whole else _KINDS[type(option)]
        for option in shape.options
    ]
    if shape.null:
        words.append("null")
    return " or ".join(dict.fromkeys(words)) or "nothing"


def in_order(first: tuple[Shape, ...]) -> str:
    """The sentence for the first items of a tuple."""
    told = [shape.about.description.rstrip(".") or kind(shape) for shape in first]
    return _short(
        f"The first items in order: {'; '.join(told)}.", "The first items each have a kind of their own."
    )


def other_members(others: Shape) -> str:
    """The sentence for members that a schema does not name."""
    return f"Members of other names are allowed, each {kind(others)}."


def given_together(alternatives: list[list[str]]) -> str:
    """The sentence for alternatives that differ in what must be given."""
    distinct = list(dict.fromkeys(", ".join(names) for names in alternatives))
    if len(distinct) < 2 or not all(distinct):
        return ""
    return _short(f"Must be given: {'; or '.join(distinct)}.", "")


def _short(sentence: str, otherwise: str) -> str:
    return sentence if len(sentence) <= _LONGEST else otherwise
