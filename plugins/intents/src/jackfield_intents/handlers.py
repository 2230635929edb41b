"""What each intent asks of its parameter and of the session, and the one change that it records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from jackfield_intents import values

if TYPE_CHECKING:
    from jackfield.session.session import Session

CURRENT_TURN: Final = "current_turn"
FAREWELL_SPOKEN: Final = "farewell_spoken"

MAX_MESSAGE: Final = 500
"""How many characters a pending message may have."""


def _no_objection(session: Session, value: Any) -> str | None:  # noqa: ARG001
    return None


@dataclass(frozen=True, slots=True)
class OneValueIntent:
    """An intent with one parameter, whose value the session records under one name.

    One change is all there is to apply, so it cannot be applied by half.
    """

    parameter: str
    change: str
    fault: Callable[[Any], str | None]
    """What is wrong with a value, whatever the session."""
    objection: Callable[[Session, Any], str | None] = _no_objection
    """What in the session stands against a value that is sound."""

    def refusal(self, session: Session, params: Mapping[str, Any]) -> str | None:
        """Why the intent cannot be applied now, or nothing when it can; changes nothing."""
        if not session.active:
            return "the session is over"
        fault = values.not_exactly(self.parameter, params)
        if fault:
            return fault
        value = params[self.parameter]
        fault = self.fault(value)
        return f"{self.parameter} {fault}" if fault else self.objection(session, value)

    def apply(self, session: Session, params: Mapping[str, Any]) -> None:
        """Record the value; called only when `refusal` had nothing to say."""
        session.change(self.change, params[self.parameter])


def _cannot_end(session: Session, after: str) -> str | None:
    if session.mode != "voice":
        return "a text session has no voice to end"
    asked = session.changes.get("end")
    # A later end only lets a farewell be heard; an earlier one would cut short what was promised.
    if asked is None or (asked == CURRENT_TURN and after == FAREWELL_SPOKEN):
        return None
    return f"the session ends already, after {asked}"


HANDLERS: Mapping[str, OneValueIntent] = MappingProxyType(
    {
        "END_VOICE_SESSION": OneValueIntent(
            "after", "end", values.one_of(CURRENT_TURN, FAREWELL_SPOKEN), _cannot_end
        ),
        "SET_PENDING_MESSAGE": OneValueIntent("message", "pending_message", values.text(MAX_MESSAGE)),
        "SUPPRESS_AUDIO": OneValueIntent("value", "suppress_audio", values.truth),
        "SUPPRESS_TRANSCRIPT": OneValueIntent("value", "suppress_transcript", values.truth),
    }
)
"""The handler of each intent by its type; they hold no state, so every session shares them."""
