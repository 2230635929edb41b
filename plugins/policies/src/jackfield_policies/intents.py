"""Handlers of the standard intents: each checks one parameter and records one session change.

A tool may put anything into an intent, so nothing here relies on the types of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from jackfield import hookimpl
from jackfield.offers import IntentHandlerOffer, Services

if TYPE_CHECKING:
    from jackfield.session.intents import IntentHandler
    from jackfield.session.session import Session
    from jackfield.settings import NoSettings

CURRENT_TURN: Final = "current_turn"
FAREWELL_SPOKEN: Final = "farewell_spoken"

MAX_MESSAGE: Final = 500
"""The maximum length of a pending message, in characters."""


Fault = Callable[[Any], str | None]
"""Returns what is wrong with a value, or None."""


def check_params(parameter: str, params: Any) -> str | None:
    """Return why `params` does not consist of exactly this parameter; None if it does."""
    if not isinstance(params, Mapping):
        return f"its parameters are {_kind(params)}, not an object"
    unknown = sorted(f"{name!r:.40}" for name in params if name != parameter)
    if unknown:
        return f"it has no parameter {', '.join(unknown[:3])}; its only parameter is {parameter}"
    return None if parameter in params else f"the parameter {parameter} is missing"


def one_of(*choices: str) -> Fault:
    """Accept one of a few words."""

    def fault(value: Any) -> str | None:
        if not isinstance(value, str):
            return f"is {_kind(value)}, not one of {', '.join(choices)}"
        return None if value in choices else f"is {value!r:.40}, not one of {', '.join(choices)}"

    return fault


def text(longest: int) -> Fault:
    """Accept text that JSON can encode, up to a length."""

    def fault(value: Any) -> str | None:
        if not isinstance(value, str):
            return f"is {_kind(value)}, not text"
        if len(value) > longest:
            return f"has {len(value)} characters; at most {longest} are allowed"
        # A session with an unpaired surrogate could not be saved.
        if any("\ud800" <= character <= "\udfff" for character in value):
            return "contains an unpaired surrogate"
        return None

    return fault


def boolean(value: Any) -> str | None:
    """Accept true or false; reject 1 and 0."""
    return None if isinstance(value, bool) else f"is {_kind(value)}, not true or false"


def _kind(value: Any) -> str:
    return "null" if value is None else f"of type {type(value).__name__}"


def _no_objection(session: Session, value: Any) -> str | None:  # noqa: ARG001
    return None


@dataclass(frozen=True, slots=True)
class OneValueIntent:
    """An intent with one parameter, whose value the session records under one name.

    It makes exactly one change, so it cannot be applied partially.
    """

    parameter: str
    change: str
    fault: Callable[[Any], str | None]
    """Returns what is wrong with a value, independent of the session."""
    objection: Callable[[Session, Any], str | None] = _no_objection
    """Returns why the session does not accept a valid value."""

    def refusal(self, session: Session, params: Mapping[str, Any]) -> str | None:
        """Return why the intent cannot be applied now, or None; changes nothing."""
        if not session.active:
            return "the session has ended"
        fault = check_params(self.parameter, params)
        if fault:
            return fault
        value = params[self.parameter]
        fault = self.fault(value)
        return f"{self.parameter} {fault}" if fault else self.objection(session, value)

    def apply(self, session: Session, params: Mapping[str, Any]) -> None:
        """Record the value; called only if `refusal` returned None."""
        session.set_flag(self.change, params[self.parameter])


def _cannot_end(session: Session, after: str) -> str | None:
    if session.mode != "voice":
        return "a text session has no voice session to end"
    asked = session.flags.get("end")
    # A later end lets the farewell be heard; an earlier one would cut it off.
    if asked is None or (asked == CURRENT_TURN and after == FAREWELL_SPOKEN):
        return None
    return f"the session is already ending, after {asked}"


HANDLERS: Mapping[str, OneValueIntent] = MappingProxyType(
    {
        "END_VOICE_SESSION": OneValueIntent(
            "after", "end", one_of(CURRENT_TURN, FAREWELL_SPOKEN), _cannot_end
        ),
        "SET_PENDING_MESSAGE": OneValueIntent("message", "pending_message", text(MAX_MESSAGE)),
        "SUPPRESS_AUDIO": OneValueIntent("value", "suppress_audio", boolean),
        "SUPPRESS_TRANSCRIPT": OneValueIntent("value", "suppress_transcript", boolean),
    }
)
"""Handlers by intent type; they have no state, so all sessions share them."""


@hookimpl
def jackfield_intent_handlers() -> Iterable[IntentHandlerOffer]:
    """Offer a handler for each of the kernel's intents."""
    from jackfield.settings import NoSettings

    return [IntentHandlerOffer(intent, partial(_create, intent), NoSettings) for intent in HANDLERS]


def _create(intent: str, settings: NoSettings, services: Services) -> IntentHandler:  # noqa: ARG001
    return HANDLERS[intent]
