"""Sentences for the user that come from the host rather than from the model."""

from __future__ import annotations

from typing import NamedTuple

from jackfield.transport.troubles import TROUBLES


class Notice(NamedTuple):
    """One sentence, and what the user can do."""

    code: str
    text: str
    suggestion: str = ""


def of_trouble(code: str) -> Notice:
    """What the user is told of a trouble."""
    kind = TROUBLES[code]
    return Notice(code, kind.sentence, kind.suggestion)


def of_slow_tools(tools: list[str]) -> Notice:
    """What the user is told while tools take long, so that silence is not taken for a fault."""
    return Notice("working", f"Still working: {', '.join(dict.fromkeys(tools))}.")
