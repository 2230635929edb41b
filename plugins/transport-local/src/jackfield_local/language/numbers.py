"""Numbers as people write and say them: 5,000, $20, 3.5 percent, two hundred and fifty thousand."""

from __future__ import annotations

import re
from typing import NamedTuple

from jackfield_local.language.spans import Span
from jackfield_local.language.words import content

_ONES = "zero one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS = {word: number for number, word in enumerate(f"{_ONES} {_TEENS}".split())}
WORDS |= {word: 10 * number for number, word in enumerate(_TENS.split(), 2)} | {"dozen": 12, "couple": 2}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}

_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
ORDINALS = {word: number for number, word in enumerate(_ORDINALS.split(), 1)}
ORDINALS |= {"1st": 1, "2nd": 2, "3rd": 3} | {f"{number}th": number for number in range(4, 32)}

_LONGEST = 1_000
"""Characters in which amounts are looked for; what is longer is a text, not a request."""

_ONE = _ONES.replace(" ", "|")
_BELOW_HUNDRED = rf"(?a:(?:(?:{_TENS.replace(' ', '|')})(?:[\s-]+(?:{_ONE}))?|{'|'.join(WORDS)})\b)"
_SCALE = "|".join(_SCALES)
NUMBER = rf"(?:\d+(?:[.,]\d+)?|{_BELOW_HUNDRED})"
"""The pattern of a plain number, for patterns of dates and lengths of time; `number` has its value."""

_AMOUNT = re.compile(
    rf"""
    (?<![\w.,@/\#:+-]) (?P<sign>-|minus\s+)? (?:[$€£¥]\s?)?
    (?: (?P<digits> \d{{1,3}}(?:\.\d{{3}}){{1,4}},\d{{1,15}}
                  | \d{{1,3}}(?:[,'\u2019\u00a0\u202f]\d{{3}}){{1,4}}(?:\.\d{{1,15}})?
                  | \d{{1,15}}(?:[.,]\d{{1,15}})?
        ) (?P<kilo>k\b)?
      | (?P<words>{_BELOW_HUNDRED}) (?:\s+point(?P<decimals>(?:[\s-]+(?:{_ONE})\b){{1,9}}))?
      | an?(?=\s+(?:{_SCALE})\b)
    )
    (?P<scales>(?:[\s-]+(?:{_SCALE})\b(?:[\s-]+(?:and\s+)?{_BELOW_HUNDRED})?){{0,4}})
    (?![\w@/]|[:.,]\d|-\d)
    (?P<half>\s+and\s+a\s+half\b)?
    (?:\s*(?:(?P<percent>%|(?:percent|per\ cent|pct)\b)|[$€£¥]|(?:dollars?|euros?|pounds?|francs?|yen)\b))?
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
_DECIMAL_COMMA = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d+,\d{1,2}|\d+,\d{4,}")
"""A comma that separates no thousands."""

_BEFORE_PRONOUN = re.compile(
    r"\b(?:the|this|that|which|any|another|each|every|no|last|next|\w+(?:st|nd|rd|th))\s+$", re.IGNORECASE
)


class Amount(NamedTuple):
    """An amount, where it stands, and whether it is a percentage."""

    value: float
    span: Span
    percent: bool = False


def number(text: str) -> float:
    """The value of a plain number, in digits or in words."""
    return float(text.replace(",", ".")) if text[0].isdigit() else float(_sum(text))


def amounts(text: str) -> list[Amount]:
    """All amounts of a text, in their order; a "one" that stands for a thing is none."""
    return [
        Amount(_value(match), Span(*match.span()), match["percent"] is not None)
        for match in _AMOUNT.finditer(text[:_LONGEST])
        if match.group().lower() != "one" or not _is_pronoun(text, match)
    ]


def forms(amount: Amount) -> list[float]:
    """The numbers that an amount can be meant as: a percentage is a fraction, too."""
    return [amount.value, round(amount.value / 100, 10)] if amount.percent else [amount.value]


def bare_amount(text: str) -> Amount | None:
    """The amount that is all a text says, but for function words; a lone "one" is an amount, too."""
    found = amounts(text)
    if not found and (one := re.search(r"\bone\b", text, re.ASCII | re.IGNORECASE)):
        found = [Amount(1.0, Span(*one.span()))]
    if len(found) != 1:
        return None
    (start, end) = found[0].span
    return None if content(f"{text[:start]} {text[end:]}") else found[0]


def _is_pronoun(text: str, one: re.Match[str]) -> bool:
    """Whether a "one" counts nothing: no noun follows, or a determiner stands before it."""
    following = re.match(r"\s+(\w+)", text[one.end() :])
    noun = following is not None and content(following[1])
    return not noun or _BEFORE_PRONOUN.search(text[: one.start()]) is not None


def _value(match: re.Match[str]) -> float:
    value, total = 1.0, 0.0
    if digits := match["digits"]:
        value = _digits(digits) * (1_000 if match["kilo"] else 1)
    elif match["words"]:
        decimals = "".join(str(WORDS[each]) for each in (match["decimals"] or "").lower().split())
        value = float(f"{_sum(match['words'])}.{decimals}")
    for word in re.findall("[a-z]+", match["scales"].lower()):
        if word in _SCALES:
            value *= _SCALES[word]
            if _SCALES[word] > 100:
                total, value = total + value, 0.0
        elif word != "and":
            value += WORDS[word]
    value += total + (0.5 if match["half"] else 0.0)
    return -value if match["sign"] else value


def _sum(text: str) -> int:
    return sum(WORDS[word] for word in re.findall("[a-z]+", text.lower()))


def _digits(text: str) -> float:
    if _DECIMAL_COMMA.fullmatch(text):
        return float(text.replace(".", "").replace(",", "."))
    return float(re.sub("[^0-9.]", "", text))
