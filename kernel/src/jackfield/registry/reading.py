"""A model's arguments, read quickly when they are plain and strictly when there is any doubt."""

from __future__ import annotations

from typing import Any

import orjson

from jackfield import strict_json
from jackfield.strict_json import JsonFault, JsonFaultKind, StrictJsonError

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
    if len(data) > 2 * strict_json.MAX_DEPTH and data.count(b"{") + data.count(b"[") > strict_json.MAX_DEPTH:
        return True
    return data.translate(_AS_ZEROS).find(_LONG_NUMBER) >= 0


def _strictly(data: bytes) -> Any:
    try:
        return strict_json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise StrictJsonError([JsonFault(JsonFaultKind.SYNTAX, f"byte {error.start}", "not UTF-8")]) from None
