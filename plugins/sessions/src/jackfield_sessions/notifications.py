"""Notifications: messages from the host to the user."""

from __future__ import annotations

from jackfield.protocol.messages import Notification
from jackfield.transport.provider_errors import PROVIDER_ERRORS

FILLER = "One moment."
"""Spoken once while slow tools run; neutral, so that it fits any request."""

_GIVEN_UP = "Retrying did not help; send your message again later."


def provider_error(code: str, *, given_up: bool = False) -> Notification:
    """Return the notification for a provider error; `given_up` says that every retry failed."""
    kind = PROVIDER_ERRORS[code]
    suggestion = _GIVEN_UP if given_up and kind.recoverable else kind.suggestion
    return Notification(code=code, text=kind.message, suggestion=suggestion)


def slow_tools(tools: list[str]) -> Notification:
    """Return the notification for tools that are still running."""
    text = f"Still working: {', '.join(dict.fromkeys(tools))}."
    return Notification(code="working", text=text, suggestion="")


def endless_calls(messages: int) -> Notification:
    """Return the notification for a model that was stopped because it only called tools."""
    return Notification(
        code="endless_calls",
        text=f"The assistant called tools {messages} times without giving an answer, so it was stopped.",
        suggestion="Say what it should do, or ask it to continue.",
    )
