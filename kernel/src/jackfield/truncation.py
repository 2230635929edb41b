"""A tool's answer cut to what a model should read, by the kind of thing it is; the cut is told."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import orjson

LIMIT = 4000
"""How long an answer to the model may be, in characters of its JSON."""

_ROOM = 200
"""Characters kept free for what is said about the cuts."""

_MOST_CUTS = 12

_LONGEST_PATH = 60

_WORTH_SHORTENING = 200
"""A member shorter than this is left out rather than shortened."""

_CODE = re.compile(
    r"^\s*(def |class |import |from \w+ import|function |const |#include|public |return\b|[{}]\s*$)"
)
_PATH = re.compile(r"^[\w.@~+-]*[/\\][^\s:]+$|^[\w@+-]+\.\w{1,8}$")


class _Place(NamedTuple):
    """A value that can be shortened, and where it stands."""

    holder: Any
    key: Any
    path: str
    value: Any


def cut(wire: bytes, limit: int = LIMIT) -> bytes:
    """An envelope as the model gets it: as it is, or with its longest parts shortened until it fits."""
    if len(wire) <= limit or len(wire.decode()) <= limit:
        return wire
    envelope = orjson.loads(wire)
    told: list[str] = []
    for _ in range(_MOST_CUTS):
        excess = _size(envelope) + _ROOM - limit
        if excess <= 0:
            break
        place = _longest(envelope, "data" if envelope["ok"] else "error")
        shorter, what = _shortened(place.value, excess)
        place.holder[place.key] = shorter
        told.append(f"{place.path[:_LONGEST_PATH]}: {what}")
    short = _told(envelope, told)
    return short if len(short.decode()) <= limit else _beginning(orjson.loads(wire), limit)


def _told(envelope: dict[str, Any], told: list[str]) -> bytes:
    # Every place once, as it was cut last.
    envelope["meta"]["cut"] = list(dict.fromkeys(reversed(told)))[:3][::-1]
    return orjson.dumps(envelope)


def _beginning(envelope: dict[str, Any], limit: int) -> bytes:
    """What cannot be shortened part by part: of data the beginning of its JSON, of an error what it says."""
    if not envelope["ok"]:
        error = envelope["error"]
        error.pop("details", None)
        error.pop("confirmation_request", None)
        told = [f"error: {len(error['message'])} characters and its details"]
        for name in ("message", "suggestion"):
            error[name] = (error.get(name) or "")[: limit // 8]
        return _told(envelope, told)
    text = orjson.dumps(envelope["data"]).decode()
    keep = limit
    while True:
        keep = keep * 3 // 4
        envelope["data"] = f"{text[:keep]} [...]"
        short = _told(envelope, [f"data: the first {keep} of {len(text)} characters of its JSON"])
        if keep == 0 or len(short.decode()) <= limit:
            return short


def _size(value: Any) -> int:
    return len(orjson.dumps(value).decode())


def _longest(holder: Any, key: Any) -> _Place:
    """The part that takes most of the room: a list of many, or a text."""
    path = str(key)
    while True:
        value = holder[key]
        if isinstance(value, dict) and value:
            inner = max(value, key=lambda name: _size(value[name]))
            if len(value) > 1 and _size(value[inner]) < _WORTH_SHORTENING:
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
    """The first records: what searches, they put in order, best first."""
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
    """Of code, the beginning and the end: names and imports stand there, and what it comes to."""
    head, _ = _first_lines(lines, keep * 2 // 3)
    begun = head.count("\n") + 1
    tail, _ = _first_lines(lines[:begun:-1], keep // 3)
    ending = tail.splitlines()[::-1]
    left_out = max(len(lines) - begun - len(ending), 0)
    text = "\n".join([head, f"[... {left_out} lines left out ...]", *ending])
    return text[: keep + 60], f"{left_out} of {len(lines)} lines left out in the middle"


def _prose(text: str, keep: int) -> tuple[str, str]:
    part = text[:keep]
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s)", part)]
    if ends and ends[-1] > keep // 2:
        part = part[: ends[-1]]
    return f"{part} [...]", f"the first {len(part)} of {len(text)} characters"
