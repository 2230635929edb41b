"""The phrases of a tool's `says`: how an assistant says that the tool has done its work."""

from __future__ import annotations

from typing import NamedTuple

MAX_WORDS = 6

FUNCTION_WORDS = frozenset(
    {
        "a", "an", "the", "this", "that", "these", "those", "my", "your", "his", "her", "its", "our", "their",
        "i", "you", "he", "she", "it", "we", "they", "me", "him", "us", "them",
    }
)  # fmt: skip
"""Articles and pronouns: a phrase with `your calendar` also matches `the calendar` and `Ana's calendar`."""

AUXILIARIES = frozenset(
    {
        "am", "is", "are", "was", "were", "be", "been", "being", "have", "has", "had", "do", "does", "did",
        "will", "would", "shall", "should", "can", "could", "may", "might", "must", "not",
    }
)  # fmt: skip


class ClaimPhrase(NamedTuple):
    """One phrase: a verb, and the other words that a sentence must contain."""

    text: str
    """The phrase as the author wrote it."""
    verb: str
    words: tuple[str, ...]
    regular: bool
    """True if the past form of the verb ends in `-ed`: forms with the same stem count as the same verb."""


def parse_phrase(text: str) -> ClaimPhrase:
    """Read a phrase such as `added to your calendar`; raises `ValueError` with the reason if invalid."""
    verb, *rest = text.lower().split()
    if verb in FUNCTION_WORDS or verb in AUXILIARIES:
        raise ValueError(f"{text!r} begins with {verb!r}; begin with the past form of a verb, as in 'booked'")
    if verb.endswith("ing"):
        raise ValueError(f"{text!r} begins with {verb!r}; write the past form of the verb, as in 'booked'")
    if len(rest) >= MAX_WORDS:
        raise ValueError(f"{text!r} has {len(rest) + 1} words; the maximum is {MAX_WORDS}")
    words = tuple(word for word in rest if word not in FUNCTION_WORDS)
    return ClaimPhrase(text, verb, words, regular=verb.endswith("ed"))
