"""Records put into the library in batches: each is safe on disk before it is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from jackfield_kb.library import Library
from jackfield_kb.loading.claims import Claims, Part

_MOST_SOURCES, _MOST_RECORDS, _MOST_CHARACTERS, _LONGEST_WAIT = 64, 1_000, 8_000_000, 2.0


@dataclass(slots=True)
class Shelf:
    """What waits to be written, and whom to tell when it is."""

    library: Library
    _parts: list[Part] = field(default_factory=list)
    _drops: list[str] = field(default_factory=list)
    _told: list[Callable[[], None]] = field(default_factory=list)
    _since: float = field(default_factory=time.monotonic)

    def put(self, part: Part) -> None:
        """Have the records of a source written with the next batch."""
        self._parts.append(part)

    def drop(self, uri: str) -> None:
        """Have a source go with the next batch."""
        self._drops.append(uri)

    def then(self, tell: Callable[[], None]) -> None:
        """Call this when everything put so far is safe."""
        self._told.append(tell)

    @property
    def is_full(self) -> bool:
        """Whether it is time to write."""
        records = sum(len(part.made) for part in self._parts)
        characters = sum(len(made.record.text) for part in self._parts for made in part.made)
        return (
            len(self._parts) >= _MOST_SOURCES
            or records >= _MOST_RECORDS
            or characters >= _MOST_CHARACTERS
            or time.monotonic() - self._since > _LONGEST_WAIT
        )

    def write(self) -> None:
        """Write what waits in one transaction, then tell."""
        if self._parts or self._drops:
            Claims(self.library, self._parts, self._drops, self.library.holders(self._ids())).settle()
            put = [(part.source, [made.record for made in part.made]) for part in self._parts]
            self.library.write(put, self._drops)
        told, self._told = self._told, []
        self._parts, self._drops, self._since = [], [], time.monotonic()
        for tell in told:
            tell()

    def _ids(self) -> Iterator[str]:
        """Every id that the records have, or may have to take instead."""
        for part in self._parts:
            for made in part.made:
                yield made.record.id
                if not made.given_id:
                    yield part.other_id(made)
