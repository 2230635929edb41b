"""The piece of a passage that shows why it was found."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jackfield_kb.text.analysis import places

MOST = 280
"""Characters of a snippet at most, the marks for what was left out not counted."""

_MARK = "…"


def snippet(passage: str, weights: Mapping[str, float]) -> str:
    """The stretch with most of the query's words, the rarest counting most, cut between words."""
    text = " ".join(passage.split())
    if len(text) <= MOST:
        return text
    start, end = _window(text, weights)
    start, end = _to_words(text, start, end)
    return f"{_MARK if start else ''}{text[start:end].strip()}{_MARK if end < len(text) else ''}"


def _window(text: str, weights: Mapping[str, float]) -> tuple[int, int]:
    """Where the best stretch begins and ends."""
    matches = places(text, weights)
    best, chosen = 0.0, (0, 0)
    for position, first in enumerate(matches):
        inside = [word for word in matches[position:] if word.end - first.start <= MOST]
        value = _value({word.stem for word in inside}, weights) + 0.01 * len(inside)
        if inside and value > best:
            best, chosen = value, (first.start, inside[-1].end)
    # What is found stands in the middle, with as much before it as behind it.
    start = max(0, chosen[0] - (MOST - (chosen[1] - chosen[0])) // 2)
    start = min(start, len(text) - MOST)
    return start, start + MOST


def _value(stems: Collection[str], weights: Mapping[str, float]) -> float:
    return sum(weights[stem] for stem in stems)


def _to_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The same stretch, without halves of words at its ends, as long as there is a blank to cut at."""
    if start and text[start - 1] != " ":
        blank = text.find(" ", start, end)
        start = blank + 1 if blank >= 0 else start
    if end < len(text) and text[end] != " ":
        blank = text.rfind(" ", start, end)
        end = blank if blank > start else end
    return start, end
