"""What a question is asked of: the studio in "until what time is the studio open?"."""

from __future__ import annotations

import re

from jackfield_local.language.words import content, stem
from jackfield_local.planner.language.requests import is_order, polite_stripped, seeks, verb

_TIMES = r"(?:times?|dates?|days?|weekdays?|hours?|minutes?|weeks?|months?|years?|clock)"
_VERBS = r"(?:am|is|are|was|were|does|do|did|has|have|had|will|would|can|could|should|must|may)"
_ASKING = re.compile(
    rf"\b(?:{_VERBS}|when|what time|how (?:long|late|early|soon|often))\s+|['\u2019]s\s+", re.IGNORECASE
)
"""What a question is asked of follows one of these."""
_OF_A_TIME = re.compile(rf"\W*(?:[\w'-]+\s+){{0,3}}{_TIMES}\b", re.IGNORECASE)
"""Or it is itself all that is said: "opening hours?"."""
_NOTHING_NAMED = re.compile(
    r"(?:i|me|my|mine|we|us|you|it|its|there|that|this|these|those|he|she|they)\b", re.IGNORECASE
)
_AUXILIARY = re.compile(rf"{_VERBS}\b", re.IGNORECASE)
_END = re.compile(
    r"[,;:?!]|\.\s|\b(?:if|in|on|at|to|by|from|with|until|till|before|after|about|and|or|than)\b",
    re.IGNORECASE,
)
_NO_MATTER = frozenset(
    stem(word)
    for line in (
        "date day weekday hour minute week month year clock morning noon afternoon evening night",
        "next last exact current local right correct precise actual present",
    )
    for word in line.split()
)
"""Times, and what one may be called without being the time of something."""
_WHEN = re.compile(
    r"^\W*(?:(?:and|so|but|until|till|since|by|at|from)\W+)*"
    r"(?:when|what time|how (?:long|late|early|soon))\b",
    re.IGNORECASE,
)


def asked_of(text: str) -> frozenset[str]:
    """The stems of what a question is asked of; none where that is the user, or nothing but a time."""
    text = polite_stripped(text)
    alone = [0] if _OF_A_TIME.match(text) and not verb(text) else []
    for start in [*alone, *(each.end() for each in _ASKING.finditer(text))]:
        rest = text[start:].lstrip()
        if not rest or _AUXILIARY.match(rest):
            continue
        if _NOTHING_NAMED.match(rest):
            return frozenset()
        if found := {*content(_END.split(rest, maxsplit=1)[0])} - _NO_MATTER:
            return frozenset(found)
    return frozenset()


def wonders(text: str) -> bool:
    """Whether somebody wants to know something, be it by the mark alone: "opening hours?"."""
    return seeks(text) or (text.rstrip().endswith("?") and not verb(text) and not is_order(text))


def asks_for_a_time(text: str) -> bool:
    """Whether the answer would be a time: "when", "how long"."""
    return bool(_WHEN.match(text))
