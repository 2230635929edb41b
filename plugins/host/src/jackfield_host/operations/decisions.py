"""What each policy decided about a call: told to whoever is in the conversation, and kept for a moment."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from jackfield.contract.response import ToolResponse
from jackfield.governance import Call
from jackfield.session.session import Session
from jackfield_sessions.talk import Talk

KEPT = 1000
"""Of how many calls it is known for whoever asks right after their end."""


class Decisions:
    """An observer of the host's own."""

    def __init__(self) -> None:
        self._latest: OrderedDict[tuple[str, str], dict[str, str]] = OrderedDict()
        self._talks: Mapping[str, Talk] = {}

    def tell(self, talks: Mapping[str, Talk]) -> None:
        """From here on tell the clients of these conversations."""
        self._talks = talks

    def of(self, session_id: str, call_id: str | None) -> dict[str, str]:
        """What each policy decided about a call that has just ended; nothing once it is forgotten."""
        return self._latest.get((session_id, call_id or ""), {})

    def call_finished(self, call: Call, response: ToolResponse) -> None:  # noqa: ARG002 - an observer's shape
        """Keep what was decided, and tell it; on the path of every call."""
        # Calls that tools make go by names that no client knows.
        if call.parent is not None or call.answers_for is None:
            return
        trail = call.trail()
        self._latest[call.session.id, call.answers_for] = trail
        if len(self._latest) > KEPT:
            self._latest.popitem(last=False)
        talk = self._talks.get(call.session.id)
        if talk is not None and talk.feed.heard:
            talk.feed.pass_on(message(call, trail))

    def session_opened(self, session: Session, **_: int) -> None:
        """Nothing: only finished calls count here."""

    def turn_began(self, session: Session) -> None:
        """Nothing: only finished calls count here."""

    def session_ended(self, session: Session) -> None:
        """Nothing: only finished calls count here."""

    async def close(self) -> None:
        """Nothing is held back."""


def message(call: Call, trail: Mapping[str, str]) -> dict[str, Any]:
    """`tool_decisions` as it is written."""
    return {
        "type": "tool_decisions",
        "tool": call.tool.id,
        "callId": call.answers_for,
        "decisions": dict(trail),
    }
