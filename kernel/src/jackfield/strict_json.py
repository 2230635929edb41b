"""Strict JSON: rejects duplicate keys, non-finite or oversized numbers, lone surrogates and deep nesting.

Parsers disagree about all of these, so such a document could mean different things to the build, the
validator, the provider and an editor. `parse_arguments` reads the arguments of calls and is fast; `loads`
reads any document and reports every fault.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

MAX_DEPTH = 64

MAX_BYTES = 1024 * 1024

_INT64 = range(-(2**63), 2**64)

# Single bytes are searched as integers and longer texts with `find`, because `b"..." in data` is slower.
_COLON, _BACKSLASH = b":\\"

# Nineteen digits in a row may be an integer beyond 64 bits, which orjson silently converts to a float.
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")

_LONG_NUMBER = b"0" * 19

_ZERO = _LONG_NUMBER[0]

# Nineteen digits in a row include one of these bytes, so only these have to be checked.
_EVERY_NINETEENTH = slice(18, None, 19)


class JsonFaultKind(StrEnum):
    """The kinds of faults in a document."""

    SYNTAX = "syntax"
    DUPLICATE_KEY = "duplicate_key"
    NUMBER = "number"
    SURROGATE = "surrogate"
    DEPTH = "depth"


class JsonFault(NamedTuple):
    """One fault in a document: its kind, its place (a JSON pointer, or line and column) and a message."""

    kind: JsonFaultKind
    where: str
    message: str


class StrictJsonError(ValueError):
    """The document is not strict JSON; `faults` lists all reasons."""

    def __init__(self, faults: list[JsonFault]) -> None:
        super().__init__("; ".join(f"{fault.where}: {fault.message}" for fault in faults))
        self.faults = faults


class _Object(dict[str, Any]):
    """A parsed object that records its duplicate keys."""

    duplicates: tuple[str, ...] = ()


class _BadNumber(NamedTuple):
    literal: str


def parse_arguments(text: str | bytes) -> tuple[dict[str, Any], bytes]:
    """Return the arguments object and its canonical JSON; raises `StrictJsonError` with all faults.

    orjson is five times as fast as `loads`, but silently keeps the last of duplicate keys. If it encodes the
    value as the same text, no key was lost. A text with spaces is not the same, but every key is followed by
    a colon, so the canonical JSON must have as many colons as the text. If that is not conclusive (escapes, a
    long number, deep nesting), `loads` parses the text again.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if not data:
        return {}, b"{}"
    if len(data) > MAX_BYTES:
        raise StrictJsonError([JsonFault(JsonFaultKind.DEPTH, "/", f"more than {MAX_BYTES} bytes")])
    try:
        value = orjson.loads(data)
        canonical = orjson.dumps(value, None, orjson.OPT_SORT_KEYS)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        # orjson can parse deeper nesting than it can serialize, so either step may fail.
        value = _loads_strictly(data)
        canonical = orjson.dumps(value, None, orjson.OPT_SORT_KEYS)
    if len(canonical) == len(data) and orjson.dumps(value) == data:
        # Encoding takes less time than the two counts and the search below.
        is_doubtful = len(data) > 2 * MAX_DEPTH and _may_be_deep(data)
    else:
        is_doubtful = canonical.count(_COLON) != data.count(_COLON) or (
            # Almost no arguments pass this test, and it is faster than the function.
            (
                _BACKSLASH in data
                or len(data) > 2 * MAX_DEPTH
                or _ZERO in data[_EVERY_NINETEENTH].translate(_AS_ZEROS)
            )
            and _may_hide_faults(data)
        )
    if is_doubtful:
        value = _loads_strictly(data)
    if not isinstance(value, dict):
        raise StrictJsonError([JsonFault(JsonFaultKind.SYNTAX, "/", "expected a JSON object")])
    return value, canonical


def _may_hide_faults(data: bytes) -> bool:
    """Return whether the text may contain an escaped colon, an integer over 64 bits, or deep nesting."""
    return b"\\u" in data or _may_be_deep(data) or data.translate(_AS_ZEROS).find(_LONG_NUMBER) >= 0


def _may_be_deep(data: bytes) -> bool:
    """Return whether the text may be nested too deeply."""
    return data.count(b"{") + data.count(b"[") > MAX_DEPTH


def _loads_strictly(data: bytes) -> Any:
    try:
        return loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise StrictJsonError([JsonFault(JsonFaultKind.SYNTAX, f"byte {error.start}", "not UTF-8")]) from None


def loads(text: str) -> Any:
    """Parse a document; raises `StrictJsonError` with all faults."""
    try:
        document = json.loads(
            text, object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_BadNumber
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        # Some messages end with a preposition, because the standard library appends the place.
        message = error.msg.removesuffix(" at").removesuffix(" starting").rstrip(": ")
        raise StrictJsonError([JsonFault(JsonFaultKind.SYNTAX, where, message)]) from None
    except RecursionError:
        raise StrictJsonError([_too_deep(())]) from None
    faults = list(_faults(document))
    if faults:
        raise StrictJsonError(faults)
    return document


def pointer(*parts: str | int) -> str:
    """Return a JSON pointer (RFC 6901), except that the root is `/`, because an empty string is invisible."""
    return "/" + "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    parsed = _Object(pairs)
    if len(parsed) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        parsed.duplicates = tuple(key for key, count in counts.items() if count > 1)
    return parsed


def _integer(literal: str) -> int | _BadNumber:
    if len(literal) > 20 or (value := int(literal)) not in _INT64:
        return _BadNumber(literal)
    return value


def _float(literal: str) -> float | _BadNumber:
    value = float(literal)
    return value if math.isfinite(value) else _BadNumber(literal)


def _faults(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[JsonFault]:
    if len(path) > MAX_DEPTH:
        yield _too_deep(path[:3])
    elif isinstance(value, _BadNumber):
        shown = value.literal if len(value.literal) <= 24 else f"{value.literal[:21]}..."
        yield JsonFault(
            JsonFaultKind.NUMBER, pointer(*path), f"{shown} is not a finite number of at most 64 bits"
        )
    elif isinstance(value, str):
        if _has_lone_surrogate(value):
            yield JsonFault(JsonFaultKind.SURROGATE, pointer(*path), "contains an unpaired surrogate")
    elif isinstance(value, _Object):
        yield from _object_faults(value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(item, (*path, index))


def _object_faults(value: _Object, path: tuple[str | int, ...]) -> Iterator[JsonFault]:
    for key in value.duplicates:
        message = f"the key {key!r} occurs more than once"
        yield JsonFault(JsonFaultKind.DUPLICATE_KEY, pointer(*path, key), message)
    for key, member in value.items():
        if _has_lone_surrogate(key):
            yield JsonFault(JsonFaultKind.SURROGATE, pointer(*path), "a key contains an unpaired surrogate")
        else:
            yield from _faults(member, (*path, key))


def _has_lone_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _too_deep(path: tuple[str | int, ...]) -> JsonFault:
    return JsonFault(JsonFaultKind.DEPTH, pointer(*path), f"nested deeper than {MAX_DEPTH} levels")
