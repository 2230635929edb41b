"""Amounts as people write and say them: 5,000, $20, 3.5 percent, two hundred and fifty thousand."""

from __future__ import annotations

import re
from typing import NamedTuple

from jackfield_local.language.numbers import WORDS, is_pronoun
from jackfield_local.language.spans import Span

_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}
_FROM_THOUSAND = 1_000
_MOST = 1e15
_LONGEST = 1_000
"""Characters in which amounts are looked for; beyond that somebody tells a story."""

_DIGITS = re.compile(
    r"(?<![\w.,@/#:+-])(?P<sign>(?:-|minus\s+)?)(?P<money>[$€£¥]\s?)?"
    r"(?P<digits>\d{1,3}(?:\.\d{3}){1,4},\d{1,15}"
    r"|\d{1,3}(?:[,'\u2019\u00a0\u202f]\d{3}){1,4}(?:\.\d{1,15})?"
    r"|\d{1,15}(?:[.,]\d{1,15})?)"
    r"(?P<kilo>k(?!\w))?(?![\w@/]|[:.,]\d|-\d)",
    re.ASCII | re.IGNORECASE,
)
_WORD = re.compile(r"(?<![\w@/#:+])[a-z]+(?![\w@/])", re.ASCII | re.IGNORECASE)
_NEXT = re.compile(r"[\s-]+(and\s+)?([a-z]+)(?!\w)", re.ASCII | re.IGNORECASE)
_BELOW_TEN = "|".join(word for word, number in WORDS.items() if number < 10 and word != "couple")
_POINT = re.compile(rf"\s+point((?:[\s-]+(?:{_BELOW_TEN})\b){{1,9}})", re.ASCII | re.IGNORECASE)
_SUFFIX = re.compile(
    r"\s*(?:(?P<percent>%|(?:percent|per cent|pct)\b)|[$€£¥]|(?:dollars?|euros?|pounds?|francs?|yen)\b)",
    re.ASCII | re.IGNORECASE,
)
_HALF = re.compile(r"\s+and\s+a\s+half\b", re.IGNORECASE)
_AROUND = re.compile(
    r"(?:it(?:'s| is| should be| was)|make it|that(?:'s| is)|about|around|roughly|exactly|only|just|say"
    r"|please|i think|maybe|at|for|over|of|the|a|an|and|is|ok|okay|well|um|uh|thanks|thank you)\b",
    re.ASCII | re.IGNORECASE,
)


class Amount(NamedTuple):
    """An amount, where it stands, and whether it is so many in a hundred."""

    value: float
    span: Span
    percent: bool = False


def amounts(text: str) -> list[Amount]:
    """All amounts of a text, in their order."""
    found: list[Amount] = []
    place = 0
    text = text[:_LONGEST]
    while (amount := _next(text, place)) is not None:
        found.append(amount)
        place = amount.span.end
    return found


def forms(amount: Amount) -> list[float]:
    """The numbers that an amount can be meant as: a percentage is a fraction, too."""
    return [amount.value, round(amount.value / 100, 10)] if amount.percent else [amount.value]


def bare_amount(text: str) -> Amount | None:
    """The amount that is all a text says, but for words that only lead to it."""
    found = amounts(text) or _lone_one(text)
    if len(found) != 1:
        return None
    around = f"{text[: found[0].span.start]} {text[found[0].span.end :]}"
    return found[0] if not _AROUND.sub("", around).strip(" .,!?;:") else None


def _lone_one(text: str) -> list[Amount]:
    match = re.search(r"\bone\b", text, re.ASCII | re.IGNORECASE)
    return [Amount(1.0, Span(*match.span()))] if match else []


def _next(text: str, place: int) -> Amount | None:
    written = _DIGITS.search(text, place)
    for match in _WORD.finditer(text, place, written.start() if written else len(text)):
        if (worded := _worded(text, match)) is not None:
            return worded
    if written is None:
        return None
    value = _value(written.group("digits")) * (1_000 if written.group("kilo") else 1)
    value, end = _gone_on(text, value, written.end(), 0)
    return _with_suffix(text, -value if written.group("sign") else value, Span(written.start(), end))


def _worded(text: str, match: re.Match[str]) -> Amount | None:
    """The amount that begins with a word; "a" begins one only before a hundred and its like."""
    word = match.group().lower()
    article = word in ("a", "an")
    if not article and word not in WORDS:
        return None
    first = 1 if article else WORDS[word]
    value, end = _gone_on(text, float(first), match.end(), 0 if article else first)
    if article and end == match.end():
        return None
    if point := _POINT.match(text, end):
        decimals = "".join(str(WORDS[each]) for each in re.findall("[a-z]+", point[1].lower()))
        value, end = _gone_on(text, float(f"{value:.0f}.{decimals}"), point.end(), 0)
    elif word == "one" and end == match.end() and is_pronoun(text, Span(*match.span())):
        return None
    return _with_suffix(text, value, Span(match.start(), end))


def _gone_on(text: str, value: float, end: int, last: int) -> tuple[float, int]:
    """A number with the words that go on with it: two, hundred, and, fifty, thousand."""
    total = 0.0
    while total + value < _MOST and (match := _NEXT.match(text, end)) is not None:
        joined, word = bool(match[1]), match[2].lower()
        if word in _SCALES and not joined:
            last = _SCALES[word]
            value *= last
            if last >= _FROM_THOUSAND:
                total, value = total + value, 0.0
        elif word in WORDS and _may_follow(last, WORDS[word], joined=joined):
            last = WORDS[word]
            value += last
        else:
            break
        end = match.end()
    return total + value, end


def _may_follow(last: int, following: int, *, joined: bool) -> bool:
    """Whether two number words are one number: "twenty five" and "hundred and five", not "three and five"."""
    if last >= _SCALES["hundred"]:
        return following < _SCALES["hundred"]
    return last in range(20, 100, 10) and 0 < following < 10 and not joined


def _value(digits: str) -> float:
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+", digits):
        return float(digits.replace(".", "").replace(",", "."))
    if re.fullmatch(r"\d+,\d{1,2}|\d+,\d{4,}", digits):
        return float(digits.replace(",", "."))  # A decimal comma: no thousands are written so.
    return float(re.sub("[^0-9.]", "", digits))


def _with_suffix(text: str, value: float, span: Span) -> Amount:
    if half := _HALF.match(text, span.end):
        value, span = value + 0.5, Span(span.start, half.end())
    match = _SUFFIX.match(text, span.end)
    if match is None:
        return Amount(value, span)
    return Amount(value, Span(span.start, match.end()), match.group("percent") is not None)
