"""A client of Jackfield's host: `async with connect(url) as session:`, and the commands chat and talk."""

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
        LostError,
        ProtocolError,
        RefusedError,
        SessionOverError,
        TurnedAwayError,
        UnreachableError,
    )
    from jackfield_client.messages import (
        Audio,
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
    from jackfield_client.session import Session, connect

__all__ = [
    "Audio",
    "ChatMessage",
    "ClientError",
    "ConfirmationRequired",
    "ConfirmationSettled",
    "CustomEvent",
    "Dormant",
    "ErrorMessage",
    "FormClosed",
    "FormRequest",
    "GoingAway",
    "Interrupted",
    "LostError",
    "Message",
    "Notification",
    "ProtocolError",
    "Reconnecting",
    "RefusedError",
    "Reset",
    "Resumed",
    "Session",
    "SessionInfo",
    "SessionOverError",
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
    "TurnedAwayError",
    "UnknownMessage",
    "UnreachableError",
    "connect",
]  # fmt: skip


@hookimpl
def jackfield_commands() -> Iterable[CommandOffer]:
    """What the client adds to the command line."""
    return [
        CommandOffer("chat", "Talk to a host's model in text, or to a host of one's own.", _chat),
        CommandOffer("talk", "Speak to a host's model from sound files.", _talk),
    ]


def _chat() -> click.Command:
    from jackfield_client.commands.chat import chat

    return chat


def _talk() -> click.Command:
    from jackfield_client.commands.talk import talk

    return talk


def __getattr__(name: str) -> Any:
    # The build imports this module of every plugin, and should not have to load a WebSocket for it.
    if name in __all__:
        for module in ("session", "messages", "errors"):
            found = import_module(f"jackfield_client.{module}")
            if hasattr(found, name):
                return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
