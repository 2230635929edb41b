"""The user's message and the context that it can refer to, in the forms that are searched for values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

from jackfield_embeddings import Vectors
from jackfield_language.words import WORD, content, stem, stems, words

_READ = 1_000  # Maximum characters of a message that are searched for values; the rest is only passed on.

Embed = Callable[[Sequence[str]], Vectors]
"""Returns sentence embeddings, one row each."""


@dataclass(frozen=True)
class UserMessage:
    """The user's last message, the messages before it, and the data that tools have returned."""

    full_text: str
    now: datetime
    embed: Embed
    earlier: tuple[str, ...] = ()
    zone: str = ""  # The IANA name of the user's time zone, if it is known.
    records: tuple[Mapping[str, Any], ...] = ()  # The last results, to which the user can refer.
    topic: str = ""  # What the conversation is about, for a question that refers back to it.
    before: str = ""  # The words of the request that a question belongs to: a day there still applies.
    day: date | None = None  # The day that the last call was about, for a clock time without a day.
    seen: str = ""  # Everything that tools have returned; it is searched for identifiers.

    @cached_property
    def text(self) -> str:
        """The part of the message that is searched for values."""
        return self.full_text[:_READ]

    @cached_property
    def everything(self) -> str:
        """The text of the last turns."""
        return "\n".join((*(each[:_READ] for each in self.earlier), self.text))

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words of the last turns."""
        return frozenset(stem(word) for word in words(self.everything))

    def share(self, text: str) -> float:
        """Return how much of a text consists of words that the user said."""
        found = [stem(word) for word in words(text)]
        return sum(each in self.stems for each in found) / len(found) if found else 0.0

    def is_shown(self, text: str) -> bool:
        """Return whether all words of a text are in the user's words or in data that tools returned."""
        return set(content(text)) <= self.stems | stems(self.seen)

    def verbatim(self, text: str) -> str | None:
        """Return the text as the user wrote it, if its words were said in this order."""
        wanted = words(text)
        for spoken in (self.text, *reversed(self.earlier)):
            placed = [*WORD.finditer(spoken)]
            heard = [each.group().lower().replace("\u2019", "'") for each in placed]
            for start in range(len(heard) - len(wanted) + 1):
                if wanted and heard[start : start + len(wanted)] == wanted:
                    return spoken[placed[start].start() : placed[start + len(wanted) - 1].end()]
        return None
