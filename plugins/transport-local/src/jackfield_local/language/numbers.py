"""Numbers as people write and say them."""

from __future__ import annotations

import re

from jackfield_local.language.spans import Span

_BELOW_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS = {word: number for number, word in enumerate(_BELOW_TWENTY.split())}
WORDS |= {word: 10 * number for number, word in enumerate(_TENS.split(), 2)} | {"dozen": 12, "couple": 2}

_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
ORDINALS = {word: number for number, word in enumerate(_ORDINALS.split(), 1)}
ORDINALS |= {"1st": 1, "2nd": 2, "3rd": 3} | {f"{number}th": number for number in range(4, 32)}

NUMBER = rf"(?:\d+(?:[.,]\d+)?|{'|'.join(sorted(WORDS, key=len, reverse=True))})"
"""A pattern of a number."""

_PRONOUN = re.compile(
    r"\b(?:can|could|does|should|would|may|might|must|do|if|the|this|that|which|any|another|each"
    r"|every|no|\w+(?:st|nd|rd|th)|last|next)\s+$",
    re.IGNORECASE,
)


def number(text: str) -> float:
    """The value of one number, in digits or in a word."""
    text = text.lower()
    return float(WORDS[text]) if text in WORDS else float(text.replace(",", "."))


def is_pronoun(text: str, one: Span) -> bool:
    """Whether a "one" stands for a thing rather than counting any."""
    after = text[one.end :].lstrip()
    return bool(_PRONOUN.search(text[: one.start])) or not after[:1].isalpha()
