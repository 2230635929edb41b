"""Python values as JSON: values that JSON cannot represent, equality, and traversal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from jackfield.strict_json import MAX_DEPTH, pointer

_INT64 = range(-(2**63), 2**64)

Path = tuple[str | int, ...]


def json_faults(value: Any, path: Path = ()) -> Iterator[str]:
    """Yield every part of a value that JSON cannot represent unchanged, with its path."""
    if len(path) > MAX_DEPTH:
        yield f"{pointer(*path[:3])}: nested deeper than {MAX_DEPTH} levels"
    elif isinstance(value, dict):
        for key, member in value.items():
            if isinstance(key, str):
                yield from (f"{pointer(*path)}: the key {fault}" for fault in _text_faults(key))
                yield from json_faults(member, (*path, key))
            else:
                yield f"{pointer(*path)}: the key {key!r} is {_a(key)}, not a str"
    elif _is_list(value):
        for index, item in enumerate(value):
            yield from json_faults(item, (*path, index))
    elif fault := _scalar_fault(value):
        yield f"{pointer(*path)}: {fault}"


def _scalar_fault(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return next(_text_faults(value), None)
    if isinstance(value, int):
        return None if value in _INT64 else f"{value} does not fit into 64 bits"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value} is not a finite number"
    return f"{value!r:.80} is {_a(value)}, which is not JSON"


def _text_faults(text: str) -> Iterator[str]:
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        yield f"{text!r:.80} contains an unpaired surrogate"


def _is_list(value: Any) -> bool:
    # A named tuple would lose its names, so the serializer rejects it.
    return isinstance(value, list) or type(value) is tuple


def _a(value: Any) -> str:
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def same_json(left: Any, right: Any) -> bool:
    """Return whether two values are the same JSON: `1` is not `true`, and a tuple is an array."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same_json(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def objects(value: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every object in a JSON value with its path, outermost first, including the value itself."""
    if isinstance(value, dict):
        yield path, value
        for key, member in value.items():
            yield from objects(member, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from objects(item, (*path, index))


def at(value: Any, path: Path) -> Any:
    """Return the part of a JSON value at a path."""
    for part in path:
        value = value[part]
    return value


def strings(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield every string in a JSON value with its path, without keys."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from strings(member, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from strings(item, (*path, index))
