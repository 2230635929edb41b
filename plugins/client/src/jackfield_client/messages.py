"""The messages that a session yields: from the host, and from the client about its connection."""

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
    "AudioChunk", "AudioItem", "CaughtUp", "ChatMessage", "ConfirmationRequired", "ConfirmationSettled",
    "CustomEvent", "Dormant", "ErrorMessage", "FormClosed", "FormRequest", "GoingAway", "Interrupted",
    "Message", "Notification",
    "PartialAnswer", "Reconnecting", "Reset", "Resumed", "SessionEvent", "SessionInfo", "SessionStatus",
    "SpeechStarted", "SpeechStopped", "TextDelta", "ToolComplete", "ToolDecisions", "ToolErrorEvent",
    "ToolProgress", "ToolStart", "Transcript", "TurnComplete", "UnknownMessage", "is_outcome",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """A chunk of speech: PCM16, 24 kHz, mono."""

    item: str
    pcm: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class UnknownMessage:
    """A message of a type that this client does not know, from a newer host."""

    type: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reconnecting:
    """The connection was lost, and the client reconnects."""

    reason: str
    attempt: int
    seconds: float
    """Seconds until the attempt."""


@dataclass(frozen=True, slots=True)
class Dormant:
    """The host closed the connection of an idle session; the user's next message resumes it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """The client has reconnected, and all missed messages have been yielded."""

    state: str
    """The state of the session at the reconnect."""
    resent: int
    """How many unacknowledged messages are resent."""


Message = HostMessage | AudioChunk | UnknownMessage | Reconnecting | Dormant | Resumed
"""Any message that a session yields."""


def is_outcome(message: Message) -> TypeGuard[ToolComplete | ToolErrorEvent]:
    """Return whether a message is the outcome of a call with an id, which then needs no decision any more."""
    if isinstance(message, ToolErrorEvent):
        return message.call_id is not None and message.error_type != "CONFIRMATION_REQUIRED"
    return isinstance(message, ToolComplete) and message.call_id is not None
