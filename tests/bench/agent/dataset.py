"""The requests that the agent is scored on: their files, the selected rows, and their time."""

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
"""The environment variable that names the file with the public requests."""

_BESIDE = Path(__file__).parents[3] / "plugins" / "transport-local" / "tests"

_R = TypeVar("_R")


def agent_test_module(name: str) -> Any:
    """Import a module of the agent's own tests, which hold the tools and the requests."""
    if str(_BESIDE) not in sys.path:
        sys.path.insert(0, str(_BESIDE))
    return import_module(name)


class Chosen(NamedTuple):
    """The selected rows."""

    development: bool = False
    """Development rows, shown with every failure; otherwise held-out rows, of which only counts are shown."""
    most: int = 0
    """The maximum number of rows of a set, in the order of their hash; 0 takes all."""
    first: int = 0

    def of(self, rows: Iterable[_R], key: Callable[[_R], str]) -> list[_R]:
        """Return the selected rows of a set."""
        held_out = agent_test_module("unseen_requests").is_held_out
        part = [each for each in rows if held_out(key(each)) != self.development]
        part.sort(key=lambda each: hashlib.sha256(key(each).encode()).digest()[1:])
        return part[self.first : self.first + self.most] if self.most else part


class Request(NamedTuple):
    """A request for third-party tools."""

    says: str
    tool: str | None
    args: dict[str, Any]
    asks: tuple[str, ...]
    """The missing required parameters; a question for any of them is right."""


def unseen_moment() -> datetime:
    """Return the time of the unseen requests."""
    moment: datetime = agent_test_module("unseen_requests").NOW
    return moment


def earlier_moment() -> datetime:
    """Return the time of the earlier requests."""
    moment: datetime = agent_test_module("agent_requests").NOW
    return moment


def third_party(chosen: Chosen) -> list[Request]:
    """Return unseen requests for the twelve tools, and some that none of them can fulfil."""
    return [
        Request(row["says"], row["tool"], row.get("args", {}), _several(row.get("asks", ())))
        for row in unseen("third_party", chosen)
    ]


def earlier(chosen: Chosen) -> list[Request]:
    """Return requests for the same tools, written by the agent's author before its code."""
    cases = chosen.of(agent_test_module("agent_requests").CASES, lambda case: str(case.says))
    return [
        Request(case.says, case.tool, dict(case.args), _several(case.asks) if case.asks else ())
        for case in cases
    ]


def unseen(name: str, chosen: Chosen) -> list[dict[str, Any]]:
    """Return rows of one of the unseen files."""
    return chosen.of(
        agent_test_module("unseen_requests").rows(name), lambda row: str(row.get("name") or row["says"])
    )


def conversations(chosen: Chosen) -> list[dict[str, Any]]:
    """Return conversations; those that were written during development belong to that part only."""
    written: list[dict[str, Any]] = agent_test_module("unseen_requests").rows("development_conversations")
    return [*unseen("conversations", chosen), *(written if chosen.development else ())]


def public(chosen: Chosen) -> list[dict[str, Any]]:
    """Return requests of public intent sets; none if their file is not named."""
    path = os.environ.get(UTTERANCES)
    if not path:
        return []
    rows = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
    return chosen.of(rows, lambda row: str(row["says"]))


def _several(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
