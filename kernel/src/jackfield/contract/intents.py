"""Changes of session state that a handler asks for; it never makes them itself."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Intent(NamedTuple):
    """One requested change: a type that some installed intent handler knows, and its parameters."""

    type: str
    params: Mapping[str, Any] = _NOTHING

    def to_wire(self) -> dict[str, Any]:
        """The flat form of the envelope: `{"type": ..., **params}`."""
        return {"type": self.type, **self.params}


def end_voice_session(after: Literal["current_turn", "farewell_spoken"] = "current_turn") -> Intent:
    """End the voice session when the current turn, or the farewell, is over."""
    return Intent("END_VOICE_SESSION", {"after": after})


def suppress_audio(value: bool = True) -> Intent:
    """Do not speak the answer to this turn."""
    return Intent("SUPPRESS_AUDIO", {"value": value})


def suppress_transcript(value: bool = True) -> Intent:
    """Do not show the transcript of this turn."""
    return Intent("SUPPRESS_TRANSCRIPT", {"value": value})


def set_pending_message(message: str) -> Intent:
    """Keep a message that the next session of this user takes up first."""
    return Intent("SET_PENDING_MESSAGE", {"message": message})
