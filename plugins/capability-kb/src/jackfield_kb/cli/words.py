"""Words of documents on a terminal: somebody else wrote them, so nothing in them may command it."""

from __future__ import annotations

import unicodedata


def plain(text: str) -> str:
    """The text without control characters, except for the ends of lines."""
    return "".join(
        character if character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs") else " "
        for character in text
    )


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
