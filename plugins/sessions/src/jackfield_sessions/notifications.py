"""Notifications: sentences for the user that come from the host rather than from the model."""

from __future__ import annotations

from typing import NamedTuple

from jackfield.transport.troubles import TROUBLES


class Notification(NamedTuple):
    """One sentence, and what the user can do."""

    code: str
    text: str
    suggestion: str = ""


FILLER = "One moment."
"""What the user hears once while slow tools run: neutral, so that it fits whatever was asked for."""

_GIVEN_UP = "Asking again did not help; say it once more in a while."


def provider_error(code: str, *, given_up: bool = False) -> Notification:
    """Tells of a provider error; `given_up` where it was recoverable, and every retry failed."""
    kind = TROUBLES[code]
    return Notification(code, kind.sentence, _GIVEN_UP if given_up and kind.recoverable else kind.suggestion)


def slow_tools(tools: list[str]) -> Notification:
    """Tells that tools still run, so that silence is not taken for a fault."""
    return Notification("working", f"Still working: {', '.join(dict.fromkeys(tools))}.")


def endless_calls(messages: int) -> Notification:
    """Tells that a model was stopped that keeps calling tools and gives no answer."""
    return Notification(
        "endless_calls",
        f"The assistant used tools {messages} times without coming to an answer, and was stopped.",
        "Say what it should do, or let it go on.",
    )
