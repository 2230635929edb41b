"""Pieces of an utterance that have been understood, so that what is left can be told from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_GAP = "\x00"
_BEFORE_GAP = re.compile(
    rf"(?:\b(?:on|at|for|from|to|in|by|with|between|until|till|and|of|the|this|next|every|around"
    rf"|starting|lasting"
    rf"|ending|a|an|my|our|invite|inviting|also|then|which|is|was)\s+|,\s*)+(?={_GAP})",
    re.IGNORECASE,
)
_AFTER_GAP = re.compile(rf"(?<={_GAP})(?:\s*(?:time|long|o'clock)\b)+", re.IGNORECASE)


class Span(NamedTuple):
    """From the first character to the one after the last."""

    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Whether they share a character."""
        return self.start < other.end and other.start < self.end


def without(text: str, spans: Iterable[Span]) -> str:
    """The text without those pieces, nor the little words that only led to them."""
    for span in sorted(spans, reverse=True):
        text = f"{text[: span.start]}{_GAP}{text[span.end :]}"
    text = _AFTER_GAP.sub("", text)
    before = None
    while before != text:
        before, text = text, _BEFORE_GAP.sub("", text)
    return " ".join(text.replace(_GAP, " ").split()).replace(" ,", ",").strip(" ,;.")


def masked(text: str, spans: Iterable[tuple[Span, str]]) -> str:
    """The text with another word in the place of each piece."""
    for span, word in sorted(spans, reverse=True):
        text = text[: span.start] + word + text[span.end :]
    return text
