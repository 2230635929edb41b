"""What is said of a result, and what of it can be referred to afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from jackfield.contract.context import Mode
from jackfield_embeddings import Vectors


@dataclass(frozen=True, slots=True)
class Quoted:
    """Sentences of a record that answer a question, as they stand in what is told."""

    said: str
    title: str
    excerpt: str
    """More of the record, for who can read."""


@dataclass(frozen=True, slots=True)
class Told:
    """Words for the user, and the list that "the second one" will mean."""

    text: str
    items: Sequence[Mapping[str, Any]] = ()
    quoted: Quoted | None = None


@dataclass(frozen=True, slots=True)
class Manners:
    """How things are told in a session."""

    mode: Mode
    zone: tzinfo
    embed: Callable[[Sequence[str]], Vectors]

    @property
    def spoken(self) -> bool:
        """Whether the words are heard rather than read."""
        return self.mode == "voice"

    @property
    def gap(self) -> str:
        """What stands between two things that are told."""
        return " " if self.spoken else "\n\n"
