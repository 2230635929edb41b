"""What a conversation remembers: its last turns, the last call, and what tools have shown."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from jackfield_local.agent.answers import records_in
from jackfield_local.agent.decision import Turn
from jackfield_local.agent.parameters import Tool

_TURNS = 3
"""Exchanges that the model is shown; each costs time to process."""

_SEEN = 20_000
"""Characters of results in which identifiers are looked for."""

_APPROVED = re.compile(r"^The user approved the call of (\w+)[^{]*(\{.*\})\s*$", re.DOTALL)
_ANSWERED = re.compile(r"^\[?(?:The answer to the call of|called) (\w+)[^{]*(\{.*\})\]?\s*$", re.DOTALL)
_DECLINED = re.compile(r"^The user (?:declined|did not decide about) the call of (\w+)")

Envelope = Mapping[str, Any]


@dataclass(frozen=True)
class Proposal:
    """The last call: what it was, and whether it still waits for the user's approval."""

    tool: Tool
    args: Mapping[str, Any]
    waiting: bool = False
    done: bool = False
    """Whether it succeeded."""
    recent: bool = True
    """Whether it belongs to the turn before this one."""
    replaces: bool = False
    """Whether it was made in the place of one that still waits."""


class Memory:
    """The memory of one conversation."""

    def __init__(self) -> None:
        self.turns: deque[Turn] = deque(maxlen=_TURNS)
        self.last: Proposal | None = None
        self.searched: Sequence[Mapping[str, Any]] = ()
        """The arguments of the last searches."""
        self.records: tuple[Mapping[str, Any], ...] = ()
        """The last results, to which the user can refer."""
        self.seen = ""
        self.asked = ""
        """The request for which the last call was made."""

    def note(self, said: str, written: str) -> None:
        """Remember a turn, in the form in which the model is shown it."""
        self.turns.append(Turn(said, written))

    def leave(self) -> None:
        """The conversation has turned from the last call to something else."""
        self.last = replace(self.last, recent=False) if self.last is not None else None

    def take(self, tool_id: str, envelope: Envelope) -> None:
        """Remember what a call came to."""
        error = envelope.get("error")
        if self.last is not None and self.last.tool.id == tool_id:
            waiting = isinstance(error, Mapping) and error.get("type") == "CONFIRMATION_REQUIRED"
            self.last = replace(self.last, waiting=waiting, done=not error)
        if not error:
            self.records = records_in(envelope.get("data")) or self.records
            self.seen = (self.seen + orjson.dumps(envelope.get("data")).decode())[-_SEEN:]

    def recall(self, text: str) -> None:
        """Take up what the host tells about a call in words."""
        if (found := outcome_in(text)) is not None:
            self.take(*found)
        elif is_declined(text):
            self.last = None


def outcome_in(text: str) -> tuple[str, Envelope] | None:
    """The tool and the answer that the host tells in words."""
    match = _APPROVED.match(text) or _ANSWERED.match(text)
    return None if match is None else (match.group(1), read_envelope(match.group(2).encode()))


def is_declined(text: str) -> bool:
    """Whether the host tells that the user declined a call."""
    return _DECLINED.match(text) is not None


def read_envelope(envelope: bytes) -> Envelope:
    """The answer to a call; one that cannot be read counts as failed."""
    try:
        found = orjson.loads(envelope)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"error": {"message": "The tool's answer cannot be read."}}
