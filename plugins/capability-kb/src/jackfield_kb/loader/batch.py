"""Writes loaded records in batches, and resolves conflicts between files that claim the same id.

The file that already has an id keeps it, unless that file no longer exists. Another file with the same id
gets a different one if its id is generated; a stated id is rejected, and the message names both files. A
personal record stays personal until a document or an option says otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jackfield_kb.library import Library, Source
from jackfield_kb.loader import slugs
from jackfield_kb.loader.documents import Problem
from jackfield_kb.loader.drafts import LoadedRecord
from jackfield_kb.loader.file_reader import FileReader
from jackfield_kb.records.interface import SourceAndOwner

UNFINISHED = "unfinished:"
"""Digest prefix of a file with problems, so that the next load reads the file again."""


@dataclass(slots=True)
class PendingRecords:
    """Records of one source that are not written yet."""

    source: Source
    reading: FileReader
    made: list[LoadedRecord]

    def other_id(self, made: LoadedRecord) -> str:
        """Return the alternative to a generated id that is taken."""
        return f"{made.record.id}-{slugs.mark(self.source.uri)}"


@dataclass(slots=True)
class IdClaims:
    """Resolves the id conflicts of one batch."""

    library: Library
    parts: Sequence[PendingRecords]
    drops: list[str]
    """Sources to drop, including missing files whose record another file claims."""

    holders: Mapping[str, SourceAndOwner]
    """The current source and owner of each id."""

    _taken: dict[str, str] = field(default_factory=dict)

    def settle(self) -> None:
        """Assign each id to one source."""
        for part in self.parts:
            uri = part.source.uri
            ids = (made.record.id for made in part.made)
            kept = (id_ for id_ in ids if id_ in self.holders and self.holders[id_].uri == uri)
            self._taken |= dict.fromkeys(kept, uri)
        for part in self.parts:
            part.made = [settled for made in part.made if (settled := self._settled(part, made))]

    def _settled(self, part: PendingRecords, made: LoadedRecord) -> LoadedRecord | None:
        rival = self._rival(made.record.id, part.source.uri)
        if rival is not None and self._is_gone(made.record.id, rival):
            self.drops.append(rival)
            rival = None
        if rival is not None and not made.given_id:
            made = replace(made, record=replace(made.record, id=part.other_id(made)))
            rival = self._rival(made.record.id, part.source.uri)
        if rival is not None:
            what = f"its record {made.record.id} already comes from {file_of(rival) or rival}"
            _refuse(part, made, what, "give one of them a different `id`, or remove one")
            return None
        if owner := self._exposed(made):
            what = f"its record {made.record.id} is personal to {owner} and would become visible to others"
            _refuse(part, made, what, f"load it with --owner {owner}, or set --namespace")
            made = replace(made, record=self.library.get([made.record.id])[0])
        self._taken[made.record.id] = part.source.uri
        return made

    def _is_gone(self, id_: str, uri: str) -> bool:
        """Return whether a rival's file is gone; a file on another machine counts as existing."""
        known = self.holders.get(id_)
        file = file_of(uri)
        return file is not None and not file.exists() and (known is None or known.is_local)

    def _exposed(self, made: LoadedRecord) -> str | None:
        """Return the owner of a personal record that would become shared without an explicit namespace."""
        known = self.holders.get(made.record.id)
        return known.owner if known and not made.given_namespace else None

    def _rival(self, id_: str, uri: str) -> str | None:
        """Return another source that has the id; None if this batch drops or rewrites that source."""
        known = self.holders.get(id_)
        holder = self._taken.get(id_) or (known and known.uri)
        if holder is None or holder == uri:
            return None
        leaving = holder in self.drops or any(part.source.uri == holder for part in self.parts)
        return None if leaving and id_ not in self._taken else holder


def _refuse(part: PendingRecords, made: LoadedRecord, what: str, remedy: str) -> None:
    digest = part.source.digest.removeprefix(UNFINISHED)
    part.source = part.source._replace(digest=f"{UNFINISHED}{digest}")
    part.reading.records -= 1
    part.reading.tell(Problem(part.reading.found.shown, what, remedy, made.line))


def file_of(uri: str) -> Path | None:
    """Return the path of a source URI; None for records without a file."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path, errors="surrogateescape")) if parts.scheme == "file" else None


_MOST_SOURCES, _MOST_RECORDS, _MOST_CHARACTERS, _LONGEST_WAIT = 64, 1_000, 8_000_000, 2.0


@dataclass(slots=True)
class BatchWriter:
    """Collects changes, and writes them in one transaction."""

    library: Library
    _parts: list[PendingRecords] = field(default_factory=list)
    _drops: list[str] = field(default_factory=list)
    _told: list[Callable[[], None]] = field(default_factory=list)
    _since: float = field(default_factory=time.monotonic)

    def put(self, part: PendingRecords) -> None:
        """Add the records of a source to the batch."""
        self._parts.append(part)

    def drop(self, uri: str) -> None:
        """Add the removal of a source to the batch."""
        self._drops.append(uri)

    def then(self, tell: Callable[[], None]) -> None:
        """Call a function once the batch is on disk."""
        self._told.append(tell)

    @property
    def is_full(self) -> bool:
        """True if the batch should be written now."""
        records = sum(len(part.made) for part in self._parts)
        characters = sum(len(made.record.text) for part in self._parts for made in part.made)
        return (
            len(self._parts) >= _MOST_SOURCES
            or records >= _MOST_RECORDS
            or characters >= _MOST_CHARACTERS
            or time.monotonic() - self._since > _LONGEST_WAIT
        )

    def write(self) -> None:
        """Write the batch in one transaction, then run the callbacks."""
        if self._parts or self._drops:
            IdClaims(self.library, self._parts, self._drops, self.library.holders(self._ids())).settle()
            put = [(part.source, [made.record for made in part.made]) for part in self._parts]
            self.library.write(put, self._drops)
        told, self._told = self._told, []
        self._parts, self._drops, self._since = [], [], time.monotonic()
        for tell in told:
            tell()

    def _ids(self) -> Iterator[str]:
        """Yield the ids of the records and their possible alternatives."""
        for part in self._parts:
            for made in part.made:
                yield made.record.id
                if not made.given_id:
                    yield part.other_id(made)
