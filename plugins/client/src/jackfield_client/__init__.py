"""Client for a Jackfield host: `async with connect(url) as session:`, and the commands chat and talk."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import CommandOffer

if TYPE_CHECKING:
    import click

    from jackfield_client.errors import (
        ClientError,
        ConnectionLostError,
        HandshakeError,
        HostUnreachableError,
        ProtocolError,
        SessionClosedError,
        SessionRejectedError,
    )
    from jackfield_client.messages import (
        AudioChunk,
        ChatMessage,
        ConfirmationRequired,
        ConfirmationSettled,
        CustomEvent,
        Dormant,
        ErrorMessage,
        FormClosed,
        FormRequest,
        GoingAway,
        Interrupted,
        Message,
        Notification,
        Reconnecting,
        Reset,
        Resumed,
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
        UnknownMessage,
    )
    from jackfield_client.session import ClientSession, connect

__all__ = [
    "AudioChunk",
    "ChatMessage",
    "ClientError",
    "ClientSession",
    "ConfirmationRequired",
    "ConfirmationSettled",
    "ConnectionLostError",
    "CustomEvent",
    "Dormant",
    "ErrorMessage",
    "FormClosed",
    "FormRequest",
    "GoingAway",
    "HandshakeError",
    "HostUnreachableError",
    "Interrupted",
    "Message",
    "Notification",
    "ProtocolError",
    "Reconnecting",
    "Reset",
    "Resumed",
    "SessionClosedError",
    "SessionInfo",
    "SessionRejectedError",
    "SessionStatus",
    "SpeechStarted",
    "SpeechStopped",
    "TextDelta",
    "ToolComplete",
    "ToolDecisions",
    "ToolErrorEvent",
    "ToolProgress",
    "ToolStart",
    "Transcript",
    "TurnComplete",
    "UnknownMessage",
    "connect",
]  # fmt: skip


@hookimpl
def jackfield_commands() -> Iterable[CommandOffer]:
    """Offer the client's commands."""
    return [
        CommandOffer("chat", "Chat with a host's model in text.", _chat),
        CommandOffer("talk", "Send recorded speech to a host's model.", _talk),
    ]


def _chat() -> click.Command:
    from jackfield_client.commands import chat

    return chat


def _talk() -> click.Command:
    from jackfield_client.commands import talk

    return talk


def __getattr__(name: str) -> Any:
    # The build imports every plugin, and should not have to load a WebSocket library for that.
    if name in __all__:
        for module in ("session", "messages", "errors"):
            loaded = import_module(f"jackfield_client.{module}")
            if hasattr(loaded, name):
                return getattr(loaded, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
