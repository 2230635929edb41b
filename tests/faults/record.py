"""Requests about a call, and their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

FINAL = frozenset({"done", "failed", "declined", "expired", "never_run"})
"""The final states."""

NOTHING_RAN = frozenset({"declined", "expired", "never_run", "waiting", "unheard"})
"""The states that deny an effect. `unheard` is the 404 of an unknown call."""

NO_ANSWER = frozenset({"unavailable", "unknown", "refused"})
"""Answers without information about a call: the host or its store is unavailable, or the request is wrong."""


class Statement(NamedTuple):
    """One answer about one call; times are of the machine's monotonic clock."""

    how: str
    """The kind of request: `execute`, `approve`, `task`, ..."""
    host: int
    asked: float
    answered: float
    state: str
    envelope: str | None = None
    """The raw envelope, its members in order."""
    data: Any = None
    denies_effects: bool = False
    """Whether it says that nothing has run."""
    token: str | None = None
    """The token of its confirmation."""
    detail: str = ""

    @property
    def is_final(self) -> bool:
        """Whether it is an outcome."""
        return self.state in FINAL


class EventRecord(NamedTuple):
    """What the events of a session say about a call; they are history without their own time."""

    state: str
    data: Any = None
    token: str | None = None
    id: int = 0


@dataclass
class CallRecord:
    """One call of the campaign."""

    name: str
    key: str
    tool: str
    before: float
    after: float
    decision: str
    """The user's decision: `approve`, `decline`, `both` at once, or `none`."""
    session: str | None = None
    """The token of its session; without one the key has its own session."""
    own_session: str | None = None
    """The token of the key's own session, once an answer contains it."""
    call_id: str | None = None
    token: str | None = None
    """The token of the first confirmation."""
    statements: list[Statement] = field(default_factory=list)
    event_records: list[EventRecord] = field(default_factory=list)
    sent: set[str] = field(default_factory=set)
    """The decisions sent, whether or not they arrived."""
    deliveries: int = 0
    settled: bool | None = None
    """How it was settled at the end: whether it ran."""

    @property
    def needs_approval(self) -> bool:
        """Whether its tool runs only once the user has approved."""
        return self.tool == "fault_book"

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the tool."""
        return {"call": self.name, "before": self.before, "after": self.after}

    @property
    def session_token(self) -> str | None:
        """The token of the session in which it can be queried."""
        return self.session or self.own_session

    def last_state(self) -> str:
        """The last reported state."""
        told = [each for each in self.statements if each.state not in NO_ANSWER]
        return max(told, key=lambda each: each.answered).state if told else "unheard"
