"""Reads one file: its digest, and its records in parts that fit into memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from jackfield_kb.errors import RecordError
from jackfield_kb.loader import slugs
from jackfield_kb.loader.documents import Document, Problem, UnreadableFileError
from jackfield_kb.loader.drafts import LoadedRecord, LoadOptions, RecordDraft, make
from jackfield_kb.loader.scan import ScannedFile
from jackfield_kb.records.rows import to_row

_READER = "1"
"""Version of the readers; a new version makes the next load read all files again."""

PART = 2_000
"""The number of records per source; a larger file has several sources."""

_MOST_PROBLEMS = 100
"""The maximum number of problems reported for one file."""


@dataclass(slots=True)
class FileReader:
    """Reads the records of one file, and collects problems and notes."""

    found: ScannedFile
    options: LoadOptions
    document: Document
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    records: int = 0
    _ids: set[str] = field(default_factory=set)
    _unreported: int = 0

    def digest(self) -> str:
        """Return a hash of the content and the options."""
        digest = hashlib.sha256(
            repr((_READER, self.options, self._stem())).encode("utf-8", "surrogateescape")
        )
        while chunk := self.document.data.read(1 << 20):
            digest.update(chunk)
        self.document.data.seek(0)
        return digest.hexdigest()

    def parts(self) -> Iterator[list[LoadedRecord]]:
        """Yield the records in lists of up to `PART`; unreadable entries become problems."""
        part: list[LoadedRecord] = []
        for made in self._records():
            self.records += 1
            part.append(made)
            if len(part) == PART:
                yield part
                part = []
        yield part

    def reported(self) -> list[Problem]:
        """Return the collected problems, and one that counts the problems above the limit."""
        if not self._unreported:
            return self.problems
        more = f"{self._unreported} more {'entry' if self._unreported == 1 else 'entries'} like these"
        return [*self.problems, Problem(self.found.shown, more, "fix the reported ones first")]

    def _records(self) -> Iterator[LoadedRecord]:
        try:
            for entry in self.found.format.reader()(self.document):
                if isinstance(entry, UnreadableFileError):
                    self._tell(entry)
                elif made := self._made(entry):
                    yield made
        except UnreadableFileError as error:
            self._tell(error)
        except Exception as error:  # noqa: BLE001 - parsers may raise anything for malformed files
            why = " ".join(f"{type(error).__name__}: {error}".split())[:160]
            self._tell(
                UnreadableFileError(
                    f"it cannot be read as {self.found.format.name} ({why})",
                    "open it in its program and save it again",
                )
            )

    def _made(self, draft: RecordDraft) -> LoadedRecord | None:
        try:
            made = make(draft, self.options, self._stem(), self.document.modified)
            made = self._own(made)
            to_row(made.record)
        except UnreadableFileError as error:
            error.line = error.line or draft.line
            self._tell(error)
        except (RecordError, OverflowError) as error:
            self._tell(UnreadableFileError(str(error), "change it in the file", draft.line))
        else:
            if draft.note:
                self.notes.append(Problem(self.found.shown, draft.note, "", draft.line))
            return made
        return None

    def _own(self, made: LoadedRecord) -> LoadedRecord:
        """Make the id unique within the file."""
        wanted = made.record.id
        id_, number = wanted, 1
        while id_ in self._ids:
            if made.given_id:
                raise UnreadableFileError(
                    f"the id {wanted} is used twice in this file", "give one of them a different id"
                )
            number += 1
            id_ = f"{wanted}-{number}"
        self._ids.add(id_)
        return made if id_ == wanted else replace(made, record=replace(made.record, id=id_))

    def _tell(self, error: UnreadableFileError) -> None:
        self.tell(error.at(self.found.shown))

    def tell(self, problem: Problem) -> None:
        """Add a problem, up to the limit."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)
        else:
            self._unreported += 1

    def _stem(self) -> str:
        return slugs.path_slug(self.found.relative)
