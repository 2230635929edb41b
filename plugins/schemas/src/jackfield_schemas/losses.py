"""What a provider's form could not hold, for the person who builds."""

from __future__ import annotations

from jackfield.offers import Lowering
from jackfield.strict_json import pointer

from jackfield_schemas.shapes import Path


class Losses:
    """Every construct that was lowered, once each, in the order of the schema's reading."""

    def __init__(self) -> None:
        self._found: dict[Lowering, None] = {}

    def add(self, path: Path, what: str) -> None:
        """Remember what became of the construct at a place."""
        self._found.setdefault(Lowering(pointer(*path) if path else "", what))

    def __len__(self) -> int:
        return len(self._found)

    def found(self) -> tuple[Lowering, ...]:
        """The losses so far."""
        return tuple(self._found)
