"""What a conversation has come to so far: the last call, what was found, and what was asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple

import jsonschema_rs

from jackfield_local.language.numbers import ORDINALS
from jackfield_local.language.words import STOP, name_words, stem, words
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.tool import Parameter

MOST_ITEMS = 50
_SHORT = 10
_ORDINAL = re.compile(
    rf"\b(?:the\s+)?({'|'.join(sorted(ORDINALS, key=len, reverse=True))}|last|other)\s+"
    r"(?:one|result|hit|record|item|option|slot|variant|version|idea|suggestion|document|doc|entry|file|match"
    r"|person|picture|time|gap)\b"
    r"|\b(?:number|no\.?|option|result|variant|#)\s*(\d{1,2})\b",
    re.IGNORECASE,
)
_THE_ONE = re.compile(
    r"\b(?:the one|that one|this one|(?<!call )(?<!name )(?<!title )(?<!make )it|that)\b", re.IGNORECASE
)

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

Item = Mapping[str, Any]


class Made(NamedTuple):
    """A call that was made in one breath with later ones."""

    tool: str
    args: Mapping[str, Any]
    standing: str


@dataclass
class Remembered:
    """The state that the next words are understood by."""

    items: Sequence[Item] = ()
    """What the last list of results held."""

    last_tool: str = ""
    last_args: Mapping[str, Any] = field(default_factory=dict)
    last_question: str = ""
    """What the user wanted to know when a tool was last called."""

    warned_of: set[str] = field(default_factory=set)

    lost: bool = False
    """Whether the last words were not understood."""

    listed: bool = False
    """Whether it was listed what can be done."""

    going_on: bool = False
    """Whether what is looked at now was said in one breath with what was done last."""

    earlier: tuple[Made, ...] = ()
    """The calls before the last one that the same message led to."""

    made: str = ""
    """What there is to say of the last call, should it be made again with something changed."""

    def found(self, items: Sequence[Item]) -> None:
        """Another list of results; an empty one changes nothing."""
        if items:
            self.items = tuple(items[:MOST_ITEMS])

    @property
    def spoken_of(self) -> date | None:
        """The day that was last talked about."""
        return day_of(self.last_args)

    @property
    def looked_at(self) -> bool:
        """Whether the last call looked at one day, of which the next words then speak."""
        days = {
            value[:10] for value in self.last_args.values() if isinstance(value, str) and _DAY.match(value)
        }
        return len(days) == 1 and not self.made

    def stands(self, tool_id: str, standing: str) -> None:
        """What there is to say of a call once it is known what came of it."""
        if tool_id == self.last_tool:
            self.made = standing
        self.earlier = tuple(
            each._replace(standing=standing) if each.tool == tool_id else each for each in self.earlier
        )

    def referred(self, text: str) -> Item | None:
        """The result that the words mean: by its place, or by its title."""
        if not self.items:
            return None
        if match := _ORDINAL.search(text):
            return self._placed(match)
        return self._titled(text)

    def beyond(self, text: str) -> bool:
        """Whether a place is named that no result has."""
        match = _ORDINAL.search(text)
        return bool(self.items) and match is not None and self._placed(match) is None

    def _placed(self, match: re.Match[str]) -> Item | None:
        word = (match.group(1) or "").lower()
        if word == "last" or (word == "other" and len(self.items) == 2):
            return self.items[-1]
        place = ORDINALS.get(word, int(match.group(2) or 0))
        return self.items[place - 1] if 0 < place <= len(self.items) else None

    def _titled(self, text: str) -> Item | None:
        said = {stem(word) for word in words(text)}
        best: tuple[float, Item] | None = None
        for item in self.items:
            named = str(item.get("title") or item.get("name") or "")
            meant = {stem(word) for word in words(named) if len(word) > 3 or word not in STOP}
            share = len(said & meant) / len(meant) if meant else 0.0
            if share > 0.6 and (best is None or share > best[0]):
                best = share, item
        if best is not None:
            return best[1]
        # In a long sentence an "it" means many things.
        one = (len(self.items) == 1 or self.going_on) and len(words(text)) <= _SHORT
        return self.items[0] if one and _THE_ONE.search(text) else None

    @staticmethod
    def gives(item: Item, parameter: Parameter) -> Any:
        """What a result has for a parameter: its id, or a member of the same name."""
        if parameter.kind is Kind.ID:
            found = item.get("id") or item.get("uid")
            return ([found] if parameter.many else found) if isinstance(found, str) else None
        if parameter.kind in (Kind.RECORDS, Kind.OBJECT, Kind.OTHER):
            return None
        parts = name_words(parameter.name)
        for key in (parameter.name, parts[0], parts[-1]):
            value = item.get(key)
            if _fits(value, parameter):
                return value
        return None


def day_of(args: Mapping[str, Any]) -> date | None:
    """The first day that stands in the arguments of a call."""
    for value in args.values():
        if isinstance(value, str) and _DAY.match(value):
            try:
                return datetime.fromisoformat(value).date()
            except ValueError:
                continue
    return None


def _fits(value: Any, parameter: Parameter) -> bool:
    if parameter.kind is Kind.MOMENT:
        return isinstance(value, str) and bool(_DAY.match(value))
    return value not in (None, "", []) and jsonschema_rs.is_valid(dict(parameter.schema), value)
