"""What can be wrong with the parameters of an intent, in words for the log and for the model.

A handler is somebody else's code and may put anything into an intent, so nothing here relies on its types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Fault = Callable[[Any], str | None]
"""Says what is wrong with a value, or nothing."""


def not_exactly(parameter: str, params: Any) -> str | None:
    """Why these are not parameters that hold this one and no other."""
    if not isinstance(params, Mapping):
        return f"its parameters are {_kind(params)} and not an object"
    unknown = sorted(f"{name!r:.40}" for name in params if name != parameter)
    if unknown:
        return f"it has no parameter {', '.join(unknown[:3])}; it takes {parameter} alone"
    return None if parameter in params else f"the parameter {parameter} is missing"


def one_of(*choices: str) -> Fault:
    """A value has to be one of a few words."""

    def fault(value: Any) -> str | None:
        if not isinstance(value, str):
            return f"is {_kind(value)}, not one of {', '.join(choices)}"
        return None if value in choices else f"is {value!r:.40}, not one of {', '.join(choices)}"

    return fault


def text(longest: int) -> Fault:
    """A value has to be text of at most so many characters, which JSON can carry."""

    def fault(value: Any) -> str | None:
        if not isinstance(value, str):
            return f"is {_kind(value)}, not text"
        if len(value) > longest:
            return f"has {len(value)} characters, at most {longest} are allowed"
        # The session could not be saved with half of a surrogate pair in it.
        if any("\ud800" <= character <= "\udfff" for character in value):
            return "holds half of a surrogate pair"
        return None

    return fault


def truth(value: Any) -> str | None:
    """A value has to be true or false; 1 and 0 are neither."""
    return None if isinstance(value, bool) else f"is {_kind(value)}, not true or false"


def _kind(value: Any) -> str:
    return "null" if value is None else f"of type {type(value).__name__}"
