"""Pieces of an utterance that have been understood, so that what is left can be told from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

GAP = "\x00"


class Span(NamedTuple):
    """From the first character to the one after the last."""

    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Whether they share a character."""
        return self.start < other.end and other.start < self.end


def blanked(text: str, spans: Iterable[Span]) -> str:
    """The text with a gap of the same length in the place of each piece."""
    for span in spans:
        text = text[: span.start] + GAP * (span.end - span.start) + text[span.end :]
    return text
