"""The template of a confirmation card: arguments by name, and moments as a person reads them.

`{name}` and `{name.member}` stand for arguments. `{start:moment}` shows a date-time in words, by the clock
that it is written in. `{start:in zone}` shows it as the local time of the zone that the argument `zone`
names, or as it is written where that argument is missing. `{start:until end}` is the length between two.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from string import Formatter
from typing import Any

import orjson


def render(template: str | None, tool_id: str, args: Mapping[str, Any]) -> str:
    """The text of a confirmation card; without a template, the tool and its arguments."""
    if template is None:
        return visible(f"{tool_id} {orjson.dumps(args).decode()}")
    parts = []
    for literal, name, form, _ in Formatter().parse(template):
        parts.append(literal)
        if name is not None:
            parts.append(visible(_filled(args, name, form or "")))
    return "".join(parts)


def _filled(args: Mapping[str, Any], path: str, form: str) -> str:
    """The text for one placeholder of a preview."""
    value = _argument(args, path)
    kind, _, other = form.partition(" ")
    if kind == "moment":
        return _moment(value, None)
    if kind == "in":
        return _moment(value, _argument(args, other))
    if kind == "until":
        return _length(value, _argument(args, other))
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _argument(args: Mapping[str, Any], path: str) -> Any:
    """The argument at a dotted path; nothing if there is none."""
    value: Any = args
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _moment(value: Any, zone: Any) -> str:
    moment = _parsed(value)
    if moment is None:
        return str(value)
    if zone is None:
        offset, shown = f"{moment:%z}", _in_words(moment)
        return f"{shown} (UTC{offset[:3]}:{offset[3:5]})" if offset else shown
    from zoneinfo import ZoneInfo

    try:
        local = moment.astimezone(ZoneInfo(str(zone)))
    except (KeyError, ValueError, OSError, OverflowError):  # The handler will say what is wrong with it.
        return f"{value} ({zone})"
    return f"{_in_words(local)} {local:%Z} ({zone})"


def _in_words(moment: datetime) -> str:
    return f"{moment:%A}, {moment.day} {moment:%B %Y, %H:%M}"


def _length(start: Any, end: Any) -> str:
    began, ended = _parsed(start), _parsed(end)
    if began is None or ended is None or (began.tzinfo is None) != (ended.tzinfo is None):
        return f"{start} to {end}"
    minutes = round((ended - began).total_seconds() / 60)
    if minutes < 0:
        return "none: it ends before it begins"
    days, rest = divmod(minutes, 24 * 60)
    parts = ((days, "d"), (rest // 60, "h"), (rest % 60, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 min"


def _parsed(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None


def visible(text: str) -> str:
    """A model's text with what a terminal or a page would obey instead of show written out.

    New lines too: a title with lines of its own could write what looks like the rest of the card.
    """
    return "".join(each if each.isprintable() else _written_out(each) for each in text)


def _written_out(character: str) -> str:
    return "\\n" if character == "\n" else f"\\u{ord(character):04x}"
