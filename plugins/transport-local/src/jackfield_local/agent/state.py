"""The state of a dialogue: the pending question, the last call, and what was said and shown so far."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

import orjson

from jackfield_local.agent.prompt import Exchange, context_line, written_call
from jackfield_local.agent.results import records_in, title_of
from jackfield_local.agent.tools import Tool, ToolParameter

_EXCHANGES = 3  # Number of exchanges that the model sees; each costs time to process.
_SEEN = 20_000  # Maximum characters of results that are searched for identifiers.
_SHOWN_RECORDS = 5
_LONGEST_ANSWER = 160
_ANSWERS = 20
# How a session reports the outcome of a call after its turn; `tests/test_chat.py` uses a real session.
_ANSWERED = re.compile(
    r"^(?:(?:The user approved|An outcome has been recorded for|The answer to) the call to"
    r"|The call to|\[called) (\w+)[^{]*(\{.*\})\]?\s*$",
    re.DOTALL,
)
DECLINED = re.compile(r"^The user (?:declined|did not decide on) the call to (\w+)")

Envelope = Mapping[str, Any]


class ExpectedReply(Enum):
    """The kind of reply that a question from the agent expects."""

    VALUE = auto()
    CONSENT = auto()
    CHOICE = auto()
    FORM = auto()


@dataclass(frozen=True)
class PendingQuestion:
    """A question from the agent that the user has not answered yet."""

    expects: ExpectedReply
    tools: tuple[Tool, ...]  # The tool to be called; for a choice, all tools that are offered.
    text: str
    said: str  # Everything that the user said for this call so far, latest words first.
    args: Mapping[str, Any] = field(default_factory=dict)
    parameter: ToolParameter | None = None
    attempts: int = 1
    passed: tuple[Tool, ...] = ()  # The tools that were offered before and not chosen.

    @property
    def tool(self) -> Tool:
        """The tool to be called, or the closest of those offered."""
        return self.tools[0]


@dataclass(frozen=True)
class LastCall:
    """The last call, and whether it still waits for the user's approval."""

    tool: Tool
    args: Mapping[str, Any]
    waiting: bool = False
    done: bool = False  # Whether it succeeded.
    recent: bool = True  # Whether it belongs to the turn before this one.


class DialogueState:
    """The memory of a dialogue; without a `question`, it expects no particular reply."""

    def __init__(self) -> None:
        self.question: PendingQuestion | None = None
        self.last: LastCall | None = None
        self.card: LastCall | None = None  # It waits for approval, even if other calls were made since.
        self.exchanges: deque[Exchange] = deque(maxlen=_EXCHANGES)
        self.said = ""  # The last message.
        self.request = ""  # The request for which the last call was made.
        self.records: tuple[Mapping[str, Any], ...] = ()  # The last results, to which the user can refer.
        self.seen = ""
        self.topic = ""  # The title of the record that answered the last search.
        self.answers: deque[tuple[str, str]] = deque(maxlen=_ANSWERS)  # Each after its request.

    def note(self, said: str, written: str) -> None:
        """Remember an exchange in the form in which the model sees it."""
        self.exchanges.append(Exchange(said, written))

    def previous(self, tool: Tool) -> LastCall | None:
        """Return a tool's call that the user can change: the last call, or the one that waits."""
        calls = (self.last, self.card)
        return next((each for each in calls if each is not None and each.tool is tool), None)

    def leave_last(self) -> None:
        """Record that the conversation has moved on from the last call."""
        self.last = replace(self.last, recent=False) if self.last is not None else None

    def take_result(self, tool_id: str, envelope: Envelope) -> None:
        """Remember the result of a call."""
        error = envelope.get("error")
        if self.last is not None and self.last.tool.id == tool_id:
            self.last = replace(self.last, waiting=is_waiting(envelope), done=not error)
            if self.last.waiting:
                self.card = self.last
        if self.card is not None and self.card.tool.id == tool_id and not is_waiting(envelope):
            self.card = None
        if not error:
            self.records = records_in(envelope.get("data")) or self.records
            self.seen = (self.seen + orjson.dumps(envelope.get("data")).decode())[-_SEEN:]

    def take_context(self, text: str) -> None:
        """Process a message from the host about a call."""
        if (found := outcome_in(text)) is not None:
            self.take_result(*found)
        elif DECLINED.match(text):
            self.last = self.card = None

    def context_lines(self, question: PendingQuestion | None) -> str:
        """Return the model's context besides the message: an open question or card, and the last results."""
        lines = [context_line("You asked", question.text)] if question is not None else []
        if self.answers and self.last is not None and self.last.recent:
            lines.append(context_line("You answered", self.answers[-1][1], _LONGEST_ANSWER))
        if self.card is not None:
            card = written_call(self.card.tool.id, self.card.args)
            lines.append(context_line("Waiting for approval", card))
        shown = [
            f"{place}. {title_of(each)[:60]} ({each['id']})"
            for place, each in enumerate(self.records[:_SHOWN_RECORDS], 1)
            if isinstance(each.get("id"), str)
        ]
        return "".join([*lines, context_line("Results", "; ".join(shown))] if shown else lines)


def is_waiting(envelope: Envelope) -> bool:
    """Return whether a call waits for the user's approval."""
    error = envelope.get("error")
    return isinstance(error, Mapping) and error.get("type") == "CONFIRMATION_REQUIRED"


def outcome_in(text: str) -> tuple[str, Envelope] | None:
    """Return the tool and the result in a message from the host; None if it reports no result."""
    match = _ANSWERED.match(text)
    return None if match is None else (match.group(1), read_envelope(match.group(2).encode()))


def read_envelope(envelope: bytes) -> Envelope:
    """Parse the result of a call; an invalid one counts as failed."""
    try:
        found = orjson.loads(envelope)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"error": {"message": "The tool's answer cannot be read."}}
