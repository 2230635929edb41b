"""Sentences for the user that come from the host rather than from the model."""

from __future__ import annotations

from typing import NamedTuple

from jackfield.transport.troubles import TROUBLES


class Notice(NamedTuple):
    """One sentence, and what the user can do."""

    code: str
    text: str
    suggestion: str = ""


FILLER = "One moment."
"""What the user hears once while slow tools run: neutral, so that it fits whatever was asked for."""

_GIVEN_UP = "Asking again did not help; say it once more in a while."


def of_trouble(code: str, *, given_up: bool = False) -> Notice:
    """What the user is told of a trouble; `given_up` where it would pass, and was waited for long enough."""
    kind = TROUBLES[code]
    return Notice(code, kind.sentence, _GIVEN_UP if given_up and kind.recoverable else kind.suggestion)


def of_slow_tools(tools: list[str]) -> Notice:
    """What the user is told while tools take long, so that silence is not taken for a fault."""
    return Notice("working", f"Still working: {', '.join(dict.fromkeys(tools))}.")


def of_endless_calls(messages: int) -> Notice:
    """What the user is told of a model that goes on calling tools and comes to no answer."""
    return Notice(
        "endless_calls",
        f"The assistant used tools {messages} times without coming to an answer, and was stopped.",
        "Say what it should do, or let it go on.",
    )
