"""Where one wish may end and another begin, in a message that has several."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from jackfield_local.language.words import content, words
from jackfield_local.planner.language.deeds import deed
from jackfield_local.planner.language.parting import is_parting
from jackfield_local.planner.language.requests import direct, is_order, is_question, polite_stripped, seeks

LONGEST_MESSAGE = 3000
"""Characters beyond which a message is a text that somebody handed over, and is not taken apart."""

_SHIELDED = re.compile(
    r"`[^`]*`|\"[^\"]*\"|“[^”]*”|\b(?:a|p)\.m\.|\b(?:e\.g|i\.e|Dr|Mrs?|Ms|St|no|vs)\.|\b[A-Z]\."
)
"""Where a full stop or an "and" ends nothing."""
_END = re.compile(r"(?<=[.!?;])\s+|\s*\n+\s*")
_NEXT = r"(?:then|after that|afterwards|also|finally|lastly|plus|besides)"
_THEN = re.compile(
    rf"(?:\s*[,;]\s*|\s+)(?:and\s+|but\s+)?{_NEXT}[,\s]+|\s*[,;]\s*and\s+|\s+and\s+|\s*,\s+", re.IGNORECASE
)
_LINKED = re.compile(
    rf"^(?:(?:and|but|so|{_NEXT}|last but not least|first(?: of all)?|second(?:ly)?|third(?:ly)?)\b[\s,]*)+",
    re.IGNORECASE,
)
_STRONG = re.compile(rf"\b{_NEXT}\b", re.IGNORECASE)
_FOLLOWS = re.compile(r"^(?:and|or|what about|how about|or rather)\b.*\?\s*$", re.IGNORECASE)
_REASON = re.compile(
    r",?\s+(?:because|since(?= (?:i|we|he|she|they|it|my|our|the|there)\b)|as(?= (?:i|we|he|she|they) )"
    r"|so that|if (?:that|it|you|possible)\b)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_ASIDE = re.compile(r"\b(?:first of all|last but not least|by the way)\b[\s,]*", re.IGNORECASE)
_SAME = re.compile(
    r"^(?:it|this|that|they|he|she)\b|^(?:(?:please|also|and)\s+)*(?:\w+)\s+(?:it|them|that|this)\b",
    re.IGNORECASE,
)
_DETAIL = re.compile(
    r"^(?:please\s+)?(?:call|name|title|make|label)\s+(?:it|them|that|this)\b", re.IGNORECASE
)
_REFERS = re.compile(
    r"^(?:\W*[\w']+){0,5}?\W*\b(?<!time is )(?<!day is )(?<!date is )(?<!will )(?<!does )"
    r"(?:it|him|her|them|these|those|(?:this|that)(?= (?:one|in|on|at|to|for|from|by|with)\b|\W*$))\b",
    re.IGNORECASE,
)
"""A word near the beginning that stands for something; the "it" of "what time is it" stands for nothing."""
_CONDITION = re.compile(
    r"\W*(?:if|when|while|once|as soon as|before|after|because|since|as)\b", re.IGNORECASE
)
_STATEMENT = re.compile(
    r"^(?:i|i'm|i've|we|we're|my|our|the|there|he|she|they|you|thanks|thank|hello|hi|hey|dear|sorry|good)\b",
    re.IGNORECASE,
)
_INVERTED = re.compile(
    r"^(?:what|who|where|when|how|which|why)(?: (?:much|many|long|often))?(?: \w+)?"
    r"(?:'s| is| are| am| do| does| did| can| was| were| will| should)\b"
    r"|^(?:is|are|am|do|does|did|can|could) (?:i|we|you|there|the|it|my|our)\b",
    re.IGNORECASE,
)
_WISHING = re.compile(
    r"i(?:'d| would)(?: \w+){0,4} (?:like|love)\b|i (?:also |still |first )?(?:need|want)\b"
    r"|(?:can|could|would|will) you\b|(?:please|kindly)\b",
    re.IGNORECASE,
)


_PARTICULAR = re.compile(r"\s[A-ZÀ-Þ0-9]")
_OF_ITS_OWN = 2
"""So many words that mean something make a wish that stands alone."""


class Piece(NamedTuple):
    """A part of a message that may be a wish of its own."""

    text: str
    apart: bool
    """Whether it stands apart by a full stop or a "then", rather than by an "and"."""

    start: int

    @property
    def asks(self) -> bool:
        """Whether it has the form of a wish or a question."""
        said = self.bare
        formed = is_order(said) or seeks(said) or is_question(said) or deed(said) or _WISHING.match(said)
        return bool(formed and content(said)) and not is_parting(said)

    @property
    def continues(self) -> bool:
        """Whether it speaks on of what was said before it: "it should be blue", "call it Review"."""
        return bool(_SAME.match(self.bare))

    @property
    def detail(self) -> bool:
        """Whether it only says more of what was wished for: its name, or what it should be like."""
        return bool(_DETAIL.match(self.bare)) or not (self.asks or _STATEMENT.match(self.bare))

    @property
    def refers(self) -> bool:
        """Whether a word in it stands for something that was said before."""
        return bool(_REFERS.match(self.wish)) or self.continues

    @property
    def asks_on(self) -> bool:
        """Whether it asks more of what the question before it is about: "and how do I reach them?"."""
        return not self.apart and self.refers and is_question(self.bare)

    @property
    def thin(self) -> bool:
        """Whether it has hardly a word of its own."""
        return len(content(self.bare)) < _OF_ITS_OWN and not _PARTICULAR.search(self.bare)

    @property
    def follows(self) -> bool:
        """Whether it asks the same of something else: "and in London?"."""
        return self.apart and bool(_FOLLOWS.match(self.text))

    @property
    def bare(self) -> str:
        """Without the words that only link it."""
        return _LINKED.sub("", self.text) or self.text

    @property
    def wish(self) -> str:
        """What is wished, without the reasons and the words that count the wishes."""
        if self.follows:
            return self.text
        shorter = _REASON.sub("", _ASIDE.sub("", self.bare)).strip(" ,;")
        return direct(shorter if len(words(shorter)) > 2 else self.bare)


def pieces(text: str) -> list[Piece]:
    """A message in the parts that its punctuation and its little words make."""
    return [*_parts(text)] if len(text) <= LONGEST_MESSAGE else [Piece(text, apart=True, start=0)]


def links(text: str) -> list[tuple[int, int]]:
    """From where to where the "and"s and commas of a sentence stand, beside those in quotes."""
    return [each.span() for each in _THEN.finditer(_hidden(text))]


def _hidden(text: str) -> str:
    return _SHIELDED.sub(lambda match: "\x00" * len(match.group()), text)


def _parts(text: str) -> Iterator[Piece]:
    hidden = _hidden(text)
    start = 0
    for end, after in [
        *((each.start(), each.end()) for each in _END.finditer(hidden)),
        (len(text), len(text)),
    ]:
        yield from _within(text, hidden, start, end)
        start = after


def _within(text: str, hidden: str, start: int, end: int) -> Iterator[Piece]:
    apart, begin = True, start
    for link in _THEN.finditer(hidden, start, end):
        rest = text[link.end() : end]
        strong = bool(_STRONG.search(link.group()))
        if not _begins_a_wish(rest, strong=strong) or _is_condition(text[begin : link.start()]):
            continue
        if _LINKED.sub("", text[begin : link.start()]).strip():
            yield Piece(text[begin : link.start()].strip(), apart, begin)
            apart, begin = strong, link.end()
    if text[begin:end].strip():
        yield Piece(text[begin:end].strip(), apart, begin)


def _is_condition(text: str) -> bool:
    """Whether a part only says when or why what follows it holds: "if it is ten in Tokyo, ..."."""
    return bool(_CONDITION.match(text)) and not _INVERTED.match(_LINKED.sub("", text.strip()))


def _begins_a_wish(text: str, *, strong: bool) -> bool:
    rest = _LINKED.sub("", text)
    if _INVERTED.match(rest) or (strong and is_question(rest.partition("?")[0])):
        return True
    return bool(is_order(rest) or deed(rest) or (seeks(rest) and not is_question(polite_stripped(rest))))
