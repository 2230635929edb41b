"""Truncates a tool's result for the model, depending on the kind of data; `meta.cut` lists the cuts."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import orjson

LIMIT = 4000
"""Maximum length of an envelope for the model, in characters."""

_ROOM = 200
"""Characters reserved for `meta.cut`."""

_MAX_CUTS = 12

_MAX_PATH = 60

_MIN_SHORTENED = 200
"""A member shorter than this is removed rather than shortened."""

_CODE = re.compile(
    r"^\s*(def |class |import |from \w+ import|function |const |#include|public |return\b|[{}]\s*$)"
)
_PATH = re.compile(r"^[\w.@~+-]*[/\\][^\s:]+$|^[\w@+-]+\.\w{1,8}$")


class _Place(NamedTuple):
    """A value that can be shortened, with its container and path."""

    holder: Any
    key: Any
    path: str
    value: Any


def truncate_result(wire: bytes, limit: int = LIMIT) -> bytes:
    """Return an envelope, with its longest parts shortened if it is longer than `limit`."""
    if len(wire) <= limit or len(wire.decode()) <= limit:
        return wire
    envelope = orjson.loads(wire)
    cuts: list[str] = []
    for _ in range(_MAX_CUTS):
        excess = _size(envelope) + _ROOM - limit
        if excess <= 0:
            break
        place = _longest(envelope, "data" if envelope["ok"] else "error")
        shorter, what = _shortened(place.value, excess)
        place.holder[place.key] = shorter
        cuts.append(f"{place.path[:_MAX_PATH]}: {what}")
    short = _with_cuts(envelope, cuts)
    return short if len(short.decode()) <= limit else _truncate_whole(orjson.loads(wire), limit)


def _with_cuts(envelope: dict[str, Any], cuts: list[str]) -> bytes:
    # The three latest cuts, without duplicates.
    envelope["meta"]["cut"] = list(dict.fromkeys(reversed(cuts)))[:3][::-1]
    return orjson.dumps(envelope)


def _truncate_whole(envelope: dict[str, Any], limit: int) -> bytes:
    """Truncate what cannot be shortened part by part: the JSON of the data, or the texts of the error."""
    if not envelope["ok"]:
        error = envelope["error"]
        error.pop("details", None)
        error.pop("confirmation_request", None)
        length = len(error["message"])
        kept = min(length, limit // 8)
        cuts = [f"error: the first {kept} of {length} characters of its message, without its details"]
        for name in ("message", "suggestion"):
            error[name] = (error.get(name) or "")[: limit // 8]
        return _with_cuts(envelope, cuts)
    text = orjson.dumps(envelope["data"]).decode()
    keep = limit
    while True:
        keep = keep * 3 // 4
        envelope["data"] = f"{text[:keep]} [...]"
        short = _with_cuts(envelope, [f"data: the first {keep} of {len(text)} characters of its JSON"])
        if keep == 0 or len(short.decode()) <= limit:
            return short


def _size(value: Any) -> int:
    return len(orjson.dumps(value).decode())


def _longest(holder: Any, key: Any) -> _Place:
    """Return the largest part: a list of many items, an object of many members, or a text."""
    path = str(key)
    while True:
        value = holder[key]
        if isinstance(value, dict) and value:
            inner = max(value, key=lambda name: _size(value[name]))
            if len(value) > 1 and _size(value[inner]) < _MIN_SHORTENED:
                return _Place(holder, key, path, value)
        elif isinstance(value, list) and value:
            inner = max(range(len(value)), key=lambda index: _size(value[index]))
            if len(value) > 1 and _size(value[inner]) < 0.6 * _size(value):
                return _Place(holder, key, path, value)
        else:
            return _Place(holder, key, path, value)
        holder, key, path = value, inner, f"{path}/{inner}"


def _shortened(value: Any, excess: int) -> tuple[Any, str]:
    if isinstance(value, list):
        return _fewer(value, excess)
    if isinstance(value, dict):
        kept, what = _fewer(list(value.items()), excess)
        return dict(kept), f"{what} members"
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    keep = max(len(text) - excess, 40)
    lines = text.splitlines()
    if len(lines) > 3 and sum(bool(_PATH.match(line.strip())) for line in lines) > 0.8 * len(lines):
        return _first_lines(lines, keep)
    if sum(bool(_CODE.match(line)) for line in lines) > max(1, 0.1 * len(lines)):
        return _both_ends(lines, keep)
    return _prose(text, keep)


def _fewer(records: list[Any], excess: int) -> tuple[list[Any], str]:
    """Keep the first records, because search tools return the best ones first."""
    kept = list(records)
    while len(kept) > 1 and excess > 0:
        excess -= _size(kept.pop()) + 1
    return kept, f"the first {len(kept)} of {len(records)}"


def _first_lines(lines: list[str], keep: int) -> tuple[str, str]:
    kept: list[str] = []
    for line in lines:
        keep -= len(line) + 2
        if keep < 0 and kept:
            break
        kept.append(line)
    return "\n".join(kept), f"the first {len(kept)} of {len(lines)} lines"


def _both_ends(lines: list[str], keep: int) -> tuple[str, str]:
    """Keep the beginning of code, which has its imports and names, and the end."""
    head, _ = _first_lines(lines, keep * 2 // 3)
    head_lines = head.count("\n") + 1
    tail, _ = _first_lines(lines[:head_lines:-1], keep // 3)
    ending = tail.splitlines()[::-1]
    left_out = max(len(lines) - head_lines - len(ending), 0)
    text = "\n".join([head, f"[... {left_out} lines left out ...]", *ending])
    return text[: keep + 60], f"{left_out} of {len(lines)} lines left out in the middle"


def _prose(text: str, keep: int) -> tuple[str, str]:
    part = text[:keep]
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s)", part)]
    if ends and ends[-1] > keep // 2:
        part = part[: ends[-1]]
    return f"{part} [...]", f"the first {len(part)} of {len(text)} characters"
