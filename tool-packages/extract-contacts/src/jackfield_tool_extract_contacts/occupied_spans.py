"""Spans of the text that entities already occupy."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from jackfield_tool_extract_contacts.entities import Entity

# Neither a letter nor a digit nor a character that may be part of a phone number.
MASK = "\ufffc"


class OccupiedSpans:
    """The spans of some entities, which are sorted and do not overlap."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        self._starts = [entity.start for entity in entities]
        self._ends = [entity.end for entity in entities]

    def __call__(self, offset: int) -> bool:
        """Return whether the offset lies inside a span."""
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]

    def touches(self, entity: Entity) -> bool:
        """Return whether the entity overlaps a span."""
        index = bisect_right(self._starts, entity.end - 1) - 1
        return index >= 0 and entity.start < self._ends[index]


def mask(text: str, entities: Iterable[Entity]) -> str:
    """Return the text, of the same length, with the entities masked."""
    pieces = []
    position = 0
    for entity in entities:
        pieces += [text[position : entity.start], MASK * (entity.end - entity.start)]
        position = entity.end
    return "".join(pieces) + text[position:]
