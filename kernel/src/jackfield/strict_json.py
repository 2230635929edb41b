"""JSON without the holes: duplicate keys, non-finite and oversized numbers, lone surrogates, endless depth.

Parsers disagree on all of these, so a document that holds one would mean different things to the build, the
validator, the provider and an editor.
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
_INT64 = range(-(2**63), 2**64)


class JsonFaultKind(StrEnum):
    """What is wrong with a document."""

    SYNTAX = "syntax"
    DUPLICATE_KEY = "duplicate_key"
    NUMBER = "number"
    SURROGATE = "surrogate"
    DEPTH = "depth"


class JsonFault(NamedTuple):
    """One hole in a document: its kind, where it is (a JSON pointer, or line and column) and what it says."""

    kind: JsonFaultKind
    where: str
    message: str


class StrictJsonError(ValueError):
    """The document cannot be trusted to mean one thing; `faults` lists every reason."""

    def __init__(self, faults: list[JsonFault]) -> None:
        super().__init__("; ".join(f"{fault.where}: {fault.message}" for fault in faults))
        self.faults = faults


class _Object(dict[str, Any]):
    """A parsed object that remembers the keys it was given twice."""

    twice: tuple[str, ...] = ()


class _BadNumber(NamedTuple):
    literal: str


def pointer(*parts: str | int) -> str:
    """A JSON pointer (RFC 6901); the root is `/`, which a reader can see, rather than the empty string."""
    return "/" + "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def loads(text: str) -> Any:
    """Parse strictly, or raise `StrictJsonError` with everything that is wrong."""
    try:
        document = json.loads(
            text, object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_BadNumber
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        # Some end in the middle of a sentence, which goes on with the place.
        said = error.msg.removesuffix(" at").removesuffix(" starting").rstrip(": ")
        raise StrictJsonError([JsonFault(JsonFaultKind.SYNTAX, where, said)]) from None
    except RecursionError:
        raise StrictJsonError([_too_deep(())]) from None
    faults = list(_faults(document))
    if faults:
        raise StrictJsonError(faults)
    return document


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    parsed = _Object(pairs)
    if len(parsed) != len(pairs):
        times = Counter(key for key, _ in pairs)
        parsed.twice = tuple(key for key, count in times.items() if count > 1)
    return parsed


def _integer(literal: str) -> int | _BadNumber:
    if len(literal) > 20 or (value := int(literal)) not in _INT64:
        return _BadNumber(literal)
    return value


def _float(literal: str) -> float | _BadNumber:
    value = float(literal)
    return value if math.isfinite(value) else _BadNumber(literal)


def _too_deep(path: tuple[str | int, ...]) -> JsonFault:
    return JsonFault(JsonFaultKind.DEPTH, pointer(*path), f"nested deeper than {MAX_DEPTH} levels")


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
            yield JsonFault(JsonFaultKind.SURROGATE, pointer(*path), "holds half of a surrogate pair")
    elif isinstance(value, _Object):
        yield from _object_faults(value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(item, (*path, index))


def _object_faults(value: _Object, path: tuple[str | int, ...]) -> Iterator[JsonFault]:
    for key in value.twice:
        yield JsonFault(JsonFaultKind.DUPLICATE_KEY, pointer(*path, key), f"the key {key!r} is given twice")
    for key, member in value.items():
        if _has_lone_surrogate(key):
            yield JsonFault(JsonFaultKind.SURROGATE, pointer(*path), "a key holds half of a surrogate pair")
        else:
            yield from _faults(member, (*path, key))


def _has_lone_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


MAX_BYTES = 1024 * 1024

# Single bytes are looked for as numbers, texts with `find`: `b"..." in data` first tries to read a number.
_COLON, _BACKSLASH = b":\\"

# Nineteen digits in a row may be an integer beyond 64 bits, which orjson turns into a float without a word.
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19


def parse_arguments(text: str | bytes) -> tuple[dict[str, Any], bytes]:
    """The arguments object and its canonical form, or `StrictJsonError` with all that is wrong with it.

    orjson is five times as fast as a strict reading but takes the last of two equal keys. Every key has a
    colon behind it, so when what was read has as many colons as what was written, no key was lost. Where that
    cannot be told (an escaped colon, a long number, deep nesting), a strict reading decides.
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
        # It reads what is nested four times as deep as what it writes.
        value = _strictly(data)
        canonical = orjson.dumps(value, None, orjson.OPT_SORT_KEYS)
    if canonical.count(_COLON) != data.count(_COLON) or _may_hide_something(data):
        value = _strictly(data)
    if not isinstance(value, dict):
        raise StrictJsonError([JsonFault(JsonFaultKind.SYNTAX, "/", "the arguments are not an object")])
    return value, canonical


def _may_hide_something(data: bytes) -> bool:
    """Whether there is room for an escaped colon, an integer beyond 64 bits, or nesting without end."""
    if _BACKSLASH in data and b"\\u" in data:
        return True
    if len(data) > 2 * MAX_DEPTH and data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        return True
    return data.translate(_AS_ZEROS).find(_LONG_NUMBER) >= 0


def _strictly(data: bytes) -> Any:
    try:
        return loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise StrictJsonError([JsonFault(JsonFaultKind.SYNTAX, f"byte {error.start}", "not UTF-8")]) from None
