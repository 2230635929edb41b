"""What the user said, in the forms in which values are looked for in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import Any

from jackfield_embeddings import Vectors

from jackfield_local.language.words import stem, words

Embed = Callable[[Sequence[str]], Vectors]
"""Sentence embeddings, a row each."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")


@dataclass(frozen=True)
class Speech:
    """The user's last words, those before them, and what tools have shown."""

    said: str
    now: datetime
    embed: Embed
    earlier: tuple[str, ...] = ()
    zone: str = ""
    """The IANA name of the user's time zone, where it is known."""

    records: tuple[Mapping[str, Any], ...] = field(default=())
    """The last results, to which the user can refer."""

    topic: str = ""
    """What the conversation is about, for a question that refers back to it."""

    before: str = ""
    """The words of the request that a question belongs to: a day that was said there still holds."""

    day: date | None = None
    """The day that the last call was about, for a clock time that names none."""

    seen: str = ""
    """All that tools have answered, in which identifiers are looked for."""

    handed: str = ""
    """The last message as a whole, where `said` is only the beginning of it."""

    @property
    def whole(self) -> str:
        """The last message, from which a text can be handed over."""
        return self.handed or self.said

    @cached_property
    def everything(self) -> str:
        """The words of the last turns."""
        return "\n".join((*self.earlier, self.said))

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words of the last turns."""
        return frozenset(stem(word) for word in words(self.everything))

    def share(self, text: str) -> float:
        """How much of a text consists of words that were said."""
        found = [stem(word) for word in words(text)]
        return sum(each in self.stems for each in found) / len(found) if found else 0.0

    def verbatim(self, text: str) -> str | None:
        """The text as the user wrote it, if its words were said in this order."""
        wanted = words(text)
        for spoken in (self.said, *reversed(self.earlier)):
            placed = [*_WORD.finditer(spoken)]
            heard = [each.group().lower().replace("\u2019", "'") for each in placed]
            for start in range(len(heard) - len(wanted) + 1):
                if wanted and heard[start : start + len(wanted)] == wanted:
                    return spoken[placed[start].start() : placed[start + len(wanted) - 1].end()]
        return None
