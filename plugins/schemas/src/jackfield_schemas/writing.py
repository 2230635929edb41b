"""What writers of every provider's form share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any

from jackfield.offers import CannotExpressError
from jackfield.strict_json import pointer

from jackfield_schemas import remarks
from jackfield_schemas.losses import Losses
from jackfield_schemas.shapes import ABSENT, About, Again, Flag, Listing, Number, Option, Path, Record, Text

Written = dict[str, Any]
"""A schema in a provider's form."""

# Providers compile patterns with engines that know no looking around and no looking back.
_BEYOND_REGULAR = re.compile(r"\(\?[=!<>(P]|\\[1-9kK]|\\[pPbBAZzGX]|[*+?}]\+")


class Writer(ABC):
    """Remembers what a form could not hold, so that it can be reported and told in the description."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses

    def option(self, option: Option, told: list[str]) -> Written:
        """One option in the provider's form; `told` takes the constraints that it cannot hold."""
        if isinstance(option, Text):
            return self.text(option, told)
        if isinstance(option, Number):
            return self.number(option, told)
        if isinstance(option, Flag):
            return self.flag(option, told)
        if isinstance(option, Listing):
            return self.listing(option, told)
        if isinstance(option, Record):
            return self.record(option, told)
        return self.again(option, told)

    @abstractmethod
    def text(self, option: Text, told: list[str]) -> Written:
        """A string."""

    @abstractmethod
    def number(self, option: Number, told: list[str]) -> Written:
        """A number."""

    @abstractmethod
    def flag(self, option: Flag, told: list[str]) -> Written:
        """A boolean."""

    @abstractmethod
    def listing(self, option: Listing, told: list[str]) -> Written:
        """An array."""

    @abstractmethod
    def record(self, option: Record, told: list[str]) -> Written:
        """An object."""

    def again(self, option: Again, told: list[str]) -> Written:  # noqa: ARG002
        """A schema inside itself; a form that has no references is read with them unrolled."""
        raise CannotExpressError(pointer(*option.path), "a schema inside itself needs a reference")

    def lose(self, path: Path, keyword: str, told: list[str], sentence: str) -> None:
        """A keyword is left out, and a sentence takes its place."""
        self._losses.add((*path, keyword), f"{keyword} is left out; the description tells of it")
        told.append(sentence)

    def pattern(self, option: Text, written: Written, told: list[str]) -> None:
        """The pattern where every engine understands it."""
        if option.pattern is None:
            return
        if _BEYOND_REGULAR.search(option.pattern):
            sentence = f"Must match the pattern {remarks.shown(option.pattern)}."
            self.lose(option.path, "pattern", told, sentence)
        else:
            written["pattern"] = option.pattern


def heading(about: About, told: list[str]) -> Written:
    """Title and description, the latter with the constraints that are only told."""
    written: Written = {}
    if about.title:
        written["title"] = about.title
    sentences = [about.description.strip(), *dict.fromkeys((*about.remarks, *told))]
    description = " ".join(sentence for sentence in sentences if sentence)
    if description:
        written["description"] = description
    return written


def default_told(about: About) -> list[str]:
    """Default and examples in words, for forms that have no place for them."""
    told = []
    if about.default is not ABSENT and about.default is not None:
        told.append(f"Default: {remarks.shown(about.default)}.")
    if about.examples:
        told.append(f"For example {', '.join(map(remarks.shown, about.examples[:3]))}.")
    return told
