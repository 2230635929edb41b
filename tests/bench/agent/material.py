"""The requests that the agent is scored on: where they are, which part of them, and when they are said."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

UTTERANCES = "JACKFIELD_UTTERANCES"
"""The variable that names the file with the public requests."""

_BESIDE = Path(__file__).parents[3] / "plugins" / "transport-local" / "tests"

_R = TypeVar("_R")


def beside(name: str) -> Any:
    """A module of the agent's own tests, which keep the tools and the requests."""
    if str(_BESIDE) not in sys.path:
        sys.path.insert(0, str(_BESIDE))
    return import_module(name)


class Chosen(NamedTuple):
    """Which rows are scored."""

    development: bool = False
    """Rows that may be read, with every failure; otherwise held-out rows, of which only counts are shown."""
    most: int = 0
    """At most so many rows of a set, in the order of their hash; 0 takes all."""
    first: int = 0

    def of(self, rows: Iterable[_R], key: Callable[[_R], str]) -> list[_R]:
        """The chosen rows of a set."""
        held_out = beside("unseen_requests").is_held_out
        part = [each for each in rows if held_out(key(each)) != self.development]
        part.sort(key=lambda each: hashlib.sha256(key(each).encode()).digest()[1:])
        return part[self.first : self.first + self.most] if self.most else part


class Request(NamedTuple):
    """A request for third-party tools."""

    says: str
    tool: str | None
    args: dict[str, Any]
    asks: tuple[str, ...]
    """The required parameters that are missing; a question for any of them is right."""


def unseen_moment() -> datetime:
    """When the unseen requests are said."""
    moment: datetime = beside("unseen_requests").NOW
    return moment


def earlier_moment() -> datetime:
    """When the earlier requests are said."""
    moment: datetime = beside("agent_requests").NOW
    return moment


def third_party(chosen: Chosen) -> list[Request]:
    """Unseen requests for the twelve tools, and some that none of them can do."""
    return [
        Request(row["says"], row["tool"], row.get("args", {}), _several(row.get("asks", ())))
        for row in unseen("third_party", chosen)
    ]


def earlier(chosen: Chosen) -> list[Request]:
    """Requests for the same tools, written by the author of the agent before its code."""
    cases = chosen.of(beside("agent_requests").CASES, lambda case: str(case.says))
    return [
        Request(case.says, case.tool, dict(case.args), _several(case.asks) if case.asks else ())
        for case in cases
    ]


def unseen(name: str, chosen: Chosen) -> list[dict[str, Any]]:
    """Rows of one of the unseen files."""
    return chosen.of(beside("unseen_requests").rows(name), lambda row: str(row.get("name") or row["says"]))


def public(chosen: Chosen) -> list[dict[str, Any]]:
    """Requests of public intent sets; none where their file is not named."""
    path = os.environ.get(UTTERANCES)
    if not path:
        return []
    rows = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
    return chosen.of(rows, lambda row: str(row["says"]))


def _several(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
