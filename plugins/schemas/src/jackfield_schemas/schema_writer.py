"""Base class of the writers for provider schemas, and the report of the constructs that they omit."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any

from jackfield.offers import CannotExpressError, Lowering
from jackfield.strict_json import pointer

from jackfield_schemas import descriptions
from jackfield_schemas.shapes import (
    ABSENT,
    Annotations,
    ArrayShape,
    BooleanShape,
    NumberShape,
    ObjectShape,
    Option,
    Path,
    RecursiveRef,
    StringShape,
)


class LoweringReport:
    """Every lowered construct, once each, in the order of the schema."""

    def __init__(self) -> None:
        self._found: dict[Lowering, None] = {}

    def add(self, path: Path, what: str) -> None:
        """Record what happened to the construct at a path."""
        self._found.setdefault(Lowering(pointer(*path) if path else "", what))

    def __len__(self) -> int:
        return len(self._found)

    def lowerings(self) -> tuple[Lowering, ...]:
        """Return the lowerings so far."""
        return tuple(self._found)


Written = dict[str, Any]
"""A schema in a provider's form."""

# Providers compile patterns with engines without lookaround and backreferences.
_BEYOND_REGULAR = re.compile(r"\(\?[=!<>(P]|\\[1-9kK]|\\[pPbBAZzGX]|[*+?}]\+")


class SchemaWriter(ABC):
    """Writes shapes in the form of a provider.

    Constraints that the form cannot hold are reported, and described in the description.
    """

    def __init__(self, report: LoweringReport) -> None:
        self._report = report

    def option(self, option: Option, notes: list[str]) -> Written:
        """Write one option; `notes` collects the constraints that the form cannot hold."""
        if isinstance(option, StringShape):
            return self.string(option, notes)
        if isinstance(option, NumberShape):
            return self.number(option, notes)
        if isinstance(option, BooleanShape):
            return self.boolean(option, notes)
        if isinstance(option, ArrayShape):
            return self.array(option, notes)
        if isinstance(option, ObjectShape):
            return self.object(option, notes)
        return self.reference(option, notes)

    @abstractmethod
    def string(self, option: StringShape, notes: list[str]) -> Written:
        """Write a string."""

    @abstractmethod
    def number(self, option: NumberShape, notes: list[str]) -> Written:
        """Write a number."""

    @abstractmethod
    def boolean(self, option: BooleanShape, notes: list[str]) -> Written:
        """Write a boolean."""

    @abstractmethod
    def array(self, option: ArrayShape, notes: list[str]) -> Written:
        """Write an array."""

    @abstractmethod
    def object(self, option: ObjectShape, notes: list[str]) -> Written:
        """Write an object."""

    def reference(self, option: RecursiveRef, notes: list[str]) -> Written:  # noqa: ARG002
        """Write a recursive reference; forms without references unroll them instead."""
        raise CannotExpressError(pointer(*option.path), "a recursive schema needs a reference")

    def lose(self, path: Path, keyword: str, notes: list[str], sentence: str) -> None:
        """Report an omitted keyword, and add a sentence about it to the notes."""
        self._report.add((*path, keyword), f"{keyword} is left out; the description mentions it")
        notes.append(sentence)

    def pattern(self, option: StringShape, written: Written, notes: list[str]) -> None:
        """Write the pattern if every engine supports it."""
        if option.pattern is None:
            return
        if _BEYOND_REGULAR.search(option.pattern):
            sentence = f"Must match the pattern {descriptions.shown(option.pattern)}."
            self.lose(option.path, "pattern", notes, sentence)
        else:
            written["pattern"] = option.pattern


def heading(annotations: Annotations, notes: list[str]) -> Written:
    """Return title and description; the description includes the notes."""
    written: Written = {}
    if annotations.title:
        written["title"] = annotations.title
    sentences = [annotations.description.strip(), *dict.fromkeys((*annotations.notes, *notes))]
    description = " ".join(sentence for sentence in sentences if sentence)
    if description:
        written["description"] = description
    return written


def default_notes(annotations: Annotations) -> list[str]:
    """Return sentences for default and examples, for forms without these keywords."""
    notes = []
    if annotations.default is not ABSENT and annotations.default is not None:
        notes.append(f"Default: {descriptions.shown(annotations.default)}.")
    if annotations.examples:
        notes.append(f"For example {', '.join(map(descriptions.shown, annotations.examples[:3]))}.")
    return notes
