"""Compares the schemas in schema.json with those of the handler's types, and merges them.

The file may say more than the types can: descriptions, examples, and keywords that begin with `x-`. In
everything that decides which values are valid, both must agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]

_ANNOTATIONS = frozenset(
    {"$comment", "$schema", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"}
)
_UNORDERED = ("enum", "required", "type")
_MAX_SHOWN = 80
_DEFS = "#/$defs/"
_MAX_REFERENCES = 20
"""Maximum number of references followed at one place; more indicate a cycle."""


def disagreements(written: Any, typed: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield every place where a schema of the file differs from that of the types; both are normalised."""
    if not isinstance(written, Mapping) or not isinstance(typed, Mapping):
        if not _same(written, typed):
            yield path, _differs(written, typed)
        return
    for keyword in dict.fromkeys([*typed, *written]):
        place = (*path, keyword)
        if keyword not in typed:
            if not _is_annotation(keyword):
                yield place, f"the file has {_shown(written[keyword])}, but the types have no `{keyword}`"
        elif keyword not in written:
            yield place, f"the types have {_shown(typed[keyword])}, but the file has no `{keyword}`"
        elif keyword in ("properties", "$defs", "patternProperties"):
            yield from _member_disagreements(written[keyword], typed[keyword], place)
        elif keyword in _UNORDERED:
            if not _same_set(written[keyword], typed[keyword]):
                yield place, _differs(written[keyword], typed[keyword])
        else:
            yield from _value_disagreements(written[keyword], typed[keyword], place)


def written_path(written: Mapping[str, Any], path: Path) -> Path:
    """Return the path in a schema as its author wrote it, where it leads through referenced definitions."""
    place: Path = ()
    here: Any = written
    for step in path:
        for _ in range(_MAX_REFERENCES):
            name = _definition_name(here)
            if name is None or step in here or name not in written.get("$defs", {}):
                break
            place, here = ("$defs", name), written["$defs"][name]
        place = (*place, step)
        try:
            here = here[step]
        except (LookupError, TypeError):
            # The file lacks this member, or states it in another form.
            here = None
    return place


def _definition_name(schema: Any) -> str | None:
    reference = schema.get("$ref") if isinstance(schema, Mapping) else None
    return (
        reference.removeprefix(_DEFS) if isinstance(reference, str) and reference.startswith(_DEFS) else None
    )


def merged(written: Any, typed: Any) -> Any:
    """Return the schema of the types with the annotations that only the file has."""
    if not isinstance(written, Mapping) or not isinstance(typed, Mapping):
        return typed
    result = dict(typed)
    for keyword, value in written.items():
        if keyword not in typed:
            if _is_annotation(keyword):
                result[keyword] = value
        elif keyword in ("properties", "$defs", "patternProperties"):
            result[keyword] = {name: merged(value.get(name), each) for name, each in typed[keyword].items()}
        elif keyword in ("items", "additionalProperties"):
            result[keyword] = merged(value, typed[keyword])
    return result


def _member_disagreements(written: Any, typed: Any, path: Path) -> Iterator[tuple[Path, str]]:
    for name in dict.fromkeys([*typed, *written]):
        place = (*path, name)
        if name not in written:
            yield place, f"the types have {name!r}, but the file does not"
        elif name not in typed:
            yield place, f"the file has {name!r}, but the types do not"
        else:
            yield from disagreements(written[name], typed[name], place)


def _value_disagreements(written: Any, typed: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(written, Mapping) and isinstance(typed, Mapping) and path[-1] not in ("default", "const"):
        yield from disagreements(written, typed, path)
    elif path[-1] in ("anyOf", "oneOf", "allOf", "prefixItems") and _same_length(written, typed):
        for index, (one, other) in enumerate(zip(written, typed, strict=True)):
            yield from disagreements(one, other, (*path, index))
    elif not _same(written, typed):
        yield path, _differs(written, typed)


def _is_annotation(keyword: str) -> bool:
    return keyword in _ANNOTATIONS or keyword.startswith("x-")


def _same_length(one: Any, other: Any) -> bool:
    return isinstance(one, list) and isinstance(other, list) and len(one) == len(other)


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; Python also counts True as 1."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


def _same_set(one: Any, other: Any) -> bool:
    ones, others = (each if isinstance(each, list) else [each] for each in (one, other))
    return sorted(map(_key, ones)) == sorted(map(_key, others))


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _differs(written: Any, typed: Any) -> str:
    return f"the file has {_shown(written)}, but the types have {_shown(typed)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
