"""Whether every number in an answer is one that JSON can carry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jsonschema_rs

_LEVELS = 5
"""How deep the schema is written out, because following a reference costs more than what it leads to."""

_PLAIN = frozenset({int, bool, type(None)})


def _any_value(levels: int) -> dict[str, Any]:
    """The schema of all that JSON can carry."""
    inner = _any_value(levels - 1) if levels else {"$ref": "#"}
    # What there is most of comes first, because the first that fits ends the search.
    forms: list[dict[str, Any]] = [
        {"type": "string"},
        {"type": ["number", "null", "boolean"]},
        {"type": "object", "additionalProperties": inner},
        {"type": "array", "items": inner},
    ]
    return {"anyOf": forms}


# The validator looks at Python's objects where they are. To it, a number that is none has no type at all.
_is_json = jsonschema_rs.Draft202012Validator(_any_value(_LEVELS)).is_valid


def is_finite(value: Any) -> bool:
    """Whether a value that can be written as JSON holds only finite numbers."""
    try:
        return _is_json(value)
    except ValueError:
        # It holds what the validator does not know but JSON's writer does, a date for example.
        return _walk(value)


def _walk(value: Any) -> bool:
    # Without recursion, because an answer may be nested as deep as it likes.
    waiting: list[Iterable[Any]] = [(value,)]
    for members in waiting:
        for each in members:
            kind = each.__class__
            if kind is str or kind in _PLAIN:
                continue
            if kind is float:
                # Zero for every number, and not a number for what is none.
                if each - each:
                    return False
            elif isinstance(each, dict):
                waiting.append(each.values())
            elif isinstance(each, list | tuple):
                waiting.append(each)
    return True
