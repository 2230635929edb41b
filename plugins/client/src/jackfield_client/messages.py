"""What a session yields: the host's messages, and what the client itself reports about the connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from jackfield.protocol.messages import (
    AudioItem,
    CaughtUp,
    ChatMessage,
    ConfirmationRequired,
    ConfirmationSettled,
    CustomEvent,
    ErrorMessage,
    FormClosed,
    FormRequest,
    GoingAway,
    HostMessage,
    Interrupted,
    Notification,
    PartialAnswer,
    Reset,
    SessionEvent,
    SessionInfo,
    SessionStatus,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolComplete,
    ToolDecisions,
    ToolErrorEvent,
    ToolProgress,
    ToolStart,
    Transcript,
    TurnComplete,
)

__all__ = [
    "Audio", "AudioItem", "CaughtUp", "ChatMessage", "ConfirmationRequired", "ConfirmationSettled",
    "CustomEvent", "Dormant", "ErrorMessage", "FormClosed", "FormRequest", "GoingAway", "Interrupted",
    "Message", "Notification",
    "PartialAnswer", "Reconnecting", "Reset", "Resumed", "SessionEvent", "SessionInfo", "SessionStatus",
    "SpeechStarted", "SpeechStopped", "TextDelta", "ToolComplete", "ToolDecisions", "ToolErrorEvent",
    "ToolProgress", "ToolStart", "Transcript", "TurnComplete", "UnknownMessage", "is_outcome",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Audio:
    """A piece of speech: PCM16, 24 kHz, mono."""

    item: str
    pcm: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class UnknownMessage:
    """A message of a newer host, of a type that this client does not know."""

    type: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reconnecting:
    """The connection is lost, and the client reconnects."""

    reason: str
    attempt: int
    seconds: float
    """How long until the attempt."""


@dataclass(frozen=True, slots=True)
class Dormant:
    """The host closed the connection of an idle session; the user's next message resumes it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """The session continues, and everything that was missed has been yielded."""

    state: str
    """The state of the session when the connection came back."""
    resent: int
    """How many messages had not reached the host, and were sent again."""


Message = HostMessage | Audio | UnknownMessage | Reconnecting | Dormant | Resumed
"""Anything a session yields."""


def is_outcome(message: Message) -> TypeGuard[ToolComplete | ToolErrorEvent]:
    """Whether a call with an id has its outcome, so that the user need not decide about it any more."""
    if isinstance(message, ToolErrorEvent):
        return message.call_id is not None and message.error_type != "CONFIRMATION_REQUIRED"
    return isinstance(message, ToolComplete) and message.call_id is not None
