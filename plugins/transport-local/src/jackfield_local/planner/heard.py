"""One utterance, read once: everything in it that can be told without knowing the tools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property

from jackfield_local.language import addresses
from jackfield_local.language.addresses import Piece
from jackfield_local.language.amounts import Amount, amounts
from jackfield_local.language.durations import Duration, duration
from jackfield_local.language.spans import Span, masked
from jackfield_local.language.times import When, read_when
from jackfield_local.language.words import content
from jackfield_local.planner.language import exact, places
from jackfield_local.planner.language.asked import asked_of
from jackfield_local.planner.language.places import Place

LONGEST_REQUEST = 500
"""Characters in which somebody says what is wanted; what is longer is a text, and not looked into."""

_PAYLOAD = re.compile(r":\s*\n|\n|(?<=[A-Za-z)\"]):\s+(?=\S+\s+\S+)")
_HOW_MANY = re.compile(
    r"\bhow many (?:more )?(?:seconds|minutes|hours|days|weeks|months|years)\b(?! of\b)", re.IGNORECASE
)
_FULL_NAME = re.compile(r"(?<=[a-z,] )[A-ZÀ-Þ][\w.\u2019-]* [A-ZÀ-Þ][\w\u2019-]*(?:['\u2019]s)?")
_STAND_INS = {
    "day": "Monday",
    "hour": "2pm",
    "place": "London",
    "email": "ann@example.org",
    "id": "doc:1",
    "url": "https://example.org",
    "path": "src/main.py",
    "name": "Alex Smith",
}


@dataclass(frozen=True)
class Heard:
    """What was said, at what time, with what had been talked about."""

    text: str
    now: datetime
    spoken_of: date | None = None
    same_day: bool = False
    """Whether an hour without a day is meant for the day that was spoken of."""

    @cached_property
    def payload(self) -> Piece | None:
        """A text that the user hands over: what follows a colon or a line break."""
        match = _PAYLOAD.search(self.text)
        if match is None or not (rest := self.text[match.end() :].strip()):
            return None
        return Piece(rest, Span(match.start(), len(self.text)))

    @cached_property
    def request(self) -> str:
        """What was said without the text that was handed over."""
        said = self.text[: self.payload.span.start].strip() if self.payload else self.text
        return said[:LONGEST_REQUEST]

    @cached_property
    def when(self) -> When | None:
        """What it says about time."""
        return read_when(self.request, self.now, self.spoken_of, same_day=self.same_day)

    @cached_property
    def length(self) -> Duration | None:
        """A length of time."""
        return duration(self.request)

    @cached_property
    def emails(self) -> list[Piece]:
        """E-mail addresses in the request."""
        return addresses.emails(self.request)

    @cached_property
    def urls(self) -> list[Piece]:
        """Links in the request."""
        return addresses.urls(self.request)

    @cached_property
    def ids(self) -> list[Piece]:
        """Ids of records."""
        return addresses.ids(self.request)

    @cached_property
    def quotes(self) -> list[Piece]:
        """What stands in quotes."""
        return addresses.quoted(self.text)

    @cached_property
    def paths(self) -> list[Piece]:
        """Words that look like a path."""
        return exact.paths(self.request)

    @cached_property
    def zones(self) -> list[Place]:
        """Places that have a clock."""
        return places.zones(self.request)

    @cached_property
    def numbers(self) -> list[Amount]:
        """Numbers that belong to nothing else."""
        taken = [*(self.when.spans if self.when else ()), *([self.length.span] if self.length else ())]
        return [each for each in amounts(self.request) if not any(each.span.overlaps(span) for span in taken)]

    @cached_property
    def content(self) -> frozenset[str]:
        """The stems of its words that mean something, beside days, hours, places, names and addresses."""
        return frozenset(content(self._general))

    @cached_property
    def asked_of(self) -> frozenset[str]:
        """The stems of what something is asked of, where that is neither the user nor a time or a place."""
        return asked_of(self._general)

    @cached_property
    def alike(self) -> str:
        """The request with every day, hour, place and address replaced by the same one, to compare it."""
        return _HOW_MANY.sub("how long", masked(self.request, self._particulars))

    @cached_property
    def _general(self) -> str:
        return masked(self.request, [(span, "") for span, _ in self._particulars])

    @cached_property
    def _particulars(self) -> list[tuple[Span, str]]:
        """What could be any other of its kind, and what stands in for it."""
        taken: list[tuple[Span, str]] = [(each.span, _STAND_INS["email"]) for each in self.emails]
        taken += [(each.span, _STAND_INS["url"]) for each in self.urls]
        taken += [(each.span, _STAND_INS["id"]) for each in self.ids]
        taken += [(each.span, _STAND_INS["path"]) for each in self.paths]
        when = self.when
        for span in when.spans if when else ():
            hour = when is not None and span == when.clock_span
            taken.append((span, _STAND_INS["hour" if hour else "day"]))
        taken += [(each.span, _STAND_INS["place"]) for each in self.zones if each.name]
        taken += [(Span(*match.span()), _STAND_INS["name"]) for match in _FULL_NAME.finditer(self.request)]
        apart: list[tuple[Span, str]] = []
        for span, word in taken:
            if not any(span.overlaps(other) for other, _ in apart):
                apart.append((span, word))
        return apart
