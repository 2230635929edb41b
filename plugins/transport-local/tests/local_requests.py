"""How a request of the evaluation is written down, and when what the agent did with it is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 16, 10, 0, tzinfo=ZONE)
"""The moment of every request: a Monday."""

Check = Callable[[Any], bool]
Earlier = tuple[str, Any]
"""Something the user said before, and the data with which the tool answered; nothing when none was called."""


@dataclass(frozen=True)
class Request:
    """What a user says, and what should come of it: a call with these arguments, or a question."""

    says: str
    tool: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    """By path, `filters.type`; a value, or a check of it. `None`: left out, or the schema's default."""

    asks: str | None = None
    """A pattern that the question has to match; then no tool may be called."""

    mode: str = "text"
    before: tuple[Earlier, ...] = ()


def words(*wanted: str, without: tuple[str, ...] = ()) -> Check:
    """A text that has these words, and not those."""

    def check(value: Any) -> bool:
        said = str(value).lower()
        return all(each.lower() in said for each in wanted) and not any(
            re.search(rf"\b{re.escape(each.lower())}\b", said) for each in without
        )

    return check


def at(text: str, *, slack: timedelta = timedelta(0)) -> Check:
    """A moment, told on a clock in Berlin unless it says otherwise."""
    wanted = datetime.fromisoformat(text)
    if wanted.tzinfo is None:
        wanted = wanted.replace(tzinfo=ZONE)

    def check(value: Any) -> bool:
        found = datetime.fromisoformat(value)
        if found.tzinfo is None:
            return False
        return abs(found - wanted) <= slack

    return check


def clock(text: str) -> Check:
    """A clock time without a zone, as an argument that is meant in another one carries it."""
    wanted = datetime.fromisoformat(text)

    def check(value: Any) -> bool:
        found = datetime.fromisoformat(value)
        return found.replace(tzinfo=None) == wanted.replace(tzinfo=None)

    return check


def day(text: str) -> Check:
    """Something on this day."""
    return lambda value: str(value).startswith(text)


def same(*wanted: str) -> Check:
    """A list with these members, in any order."""
    return lambda value: isinstance(value, list) and sorted(value) == sorted(wanted)


def ids(*wanted: str) -> Check:
    """A list of objects with these ids."""
    return lambda value: isinstance(value, list) and [each.get("id") for each in value] == list(wanted)


def one_of(*checks: Any) -> Check:
    """Any of these."""
    return lambda value: any(each(value) if callable(each) else each == value for each in checks)


def wrong(request: Request, tool: str | None, args: Mapping[str, Any], said: str) -> str:
    """Why this is not what the request asks for; empty when it is."""
    if request.asks is not None:
        if tool is not None:
            return f"called {tool} {dict(args)} instead of asking"
        if "which tool you mean" in said or "what you want" in said:
            return f"understood nothing: {said!r}"
        return "" if re.search(request.asks, said, re.IGNORECASE) else f"did not ask for it: {said!r}"
    if tool != request.tool:
        return f"took {tool} instead of {request.tool}: {said!r}"
    for path, wanted in request.args.items():
        found = _at(args, path)
        if wanted is None:
            if found is not None:
                return f"{path} is {found!r} and was not asked for"
        elif found is None or not (wanted(found) if callable(wanted) else found == wanted):
            return f"{path} is {found!r} in {dict(args)}"
    return ""


def _at(args: Any, path: str) -> Any:
    for step in path.split("."):
        if not isinstance(args, Mapping) or step not in args:
            return None
        args = args[step]
    return args
