"""Notifications: sentences for the user that come from the host rather than from the model."""

from __future__ import annotations

from jackfield.protocol.messages import Notification
from jackfield.transport.provider_errors import PROVIDER_ERRORS

FILLER = "One moment."
"""What the user hears once while slow tools run: neutral, so that it fits whatever was asked for."""

_GIVEN_UP = "Asking again did not help; say it once more in a while."


def provider_error(code: str, *, given_up: bool = False) -> Notification:
    """Tells of a provider error; `given_up` where it was recoverable, and every retry failed."""
    kind = PROVIDER_ERRORS[code]
    suggestion = _GIVEN_UP if given_up and kind.recoverable else kind.suggestion
    return Notification(code=code, text=kind.message, suggestion=suggestion)


def slow_tools(tools: list[str]) -> Notification:
    """Tells that tools still run, so that silence is not taken for a fault."""
    text = f"Still working: {', '.join(dict.fromkeys(tools))}."
    return Notification(code="working", text=text, suggestion="")


def endless_calls(messages: int) -> Notification:
    """Tells that a model was stopped that keeps calling tools and gives no answer."""
    return Notification(
        code="endless_calls",
        text=f"The assistant used tools {messages} times without coming to an answer, and was stopped.",
        suggestion="Say what it should do, or let it go on.",
    )
