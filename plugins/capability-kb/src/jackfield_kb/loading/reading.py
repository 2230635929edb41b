"""One file read: its digest, and its records in parts that fit into memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from jackfield_kb.errors import RecordError
from jackfield_kb.loading import naming
from jackfield_kb.loading.documents import Document
from jackfield_kb.loading.drafts import Draft, Made, Options, make
from jackfield_kb.loading.problems import Problem, UnreadableError
from jackfield_kb.loading.walk import Found
from jackfield_kb.records.statements import to_row

_READER = "1"
"""Raised when the readers get more out of the same files, so that those are read again."""

PART = 2_000
"""Records of a file that are kept under one source; a longer file has several."""

_MOST_PROBLEMS = 100
"""How many problems of one file are told one by one."""


@dataclass(slots=True)
class Reading:
    """What is being read from one file."""

    found: Found
    options: Options
    document: Document
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    records: int = 0
    _ids: set[str] = field(default_factory=set)
    _untold: int = 0

    def digest(self) -> str:
        """What changes with the content, and with the options it is read under."""
        digest = hashlib.sha256(
            repr((_READER, self.options, self._stem())).encode("utf-8", "surrogateescape")
        )
        while chunk := self.document.data.read(1 << 20):
            digest.update(chunk)
        self.document.data.seek(0)
        return digest.hexdigest()

    def parts(self) -> Iterator[list[Made]]:
        """The records, `PART` at a time; what cannot be read is a problem and never an error."""
        part: list[Made] = []
        for made in self._records():
            self.records += 1
            part.append(made)
            if len(part) == PART:
                yield part
                part = []
        yield part

    def told(self) -> list[Problem]:
        """The problems, and how many there were beside those."""
        if not self._untold:
            return self.problems
        more = f"{self._untold} more entries like these"
        return [*self.problems, Problem(self.found.shown, more, "mend those that are told first")]

    def _records(self) -> Iterator[Made]:
        try:
            for entry in self.found.format.reader()(self.document):
                if isinstance(entry, UnreadableError):
                    self._tell(entry)
                elif made := self._made(entry):
                    yield made
        except UnreadableError as error:
            self._tell(error)
        except Exception as error:  # noqa: BLE001 - a parser may raise anything at a file that is not what it should be
            why = " ".join(f"{type(error).__name__}: {error}".split())[:160]
            self._tell(
                UnreadableError(
                    f"it cannot be read as {self.found.format.name} ({why})",
                    "open it in the program it comes from and save it again",
                )
            )

    def _made(self, draft: Draft) -> Made | None:
        try:
            made = make(draft, self.options, self._stem(), self.document.modified)
            made = self._own(made)
            to_row(made.record)
        except UnreadableError as error:
            error.line = error.line or draft.line
            self._tell(error)
        except (RecordError, OverflowError) as error:
            self._tell(UnreadableError(str(error), "change it in the file", draft.line))
        else:
            if draft.note:
                self.notes.append(Problem(self.found.shown, draft.note, "", draft.line))
            return made
        return None

    def _own(self, made: Made) -> Made:
        """The record under an id that no other record of the file has."""
        wanted = made.record.id
        id_, number = wanted, 1
        while id_ in self._ids:
            if made.given_id:
                raise UnreadableError(
                    f"the id {wanted} is used twice in this file", "give one of them another id"
                )
            number += 1
            id_ = f"{wanted}-{number}"
        self._ids.add(id_)
        return made if id_ == wanted else replace(made, record=replace(made.record, id=id_))

    def _tell(self, error: UnreadableError) -> None:
        self.tell(error.at(self.found.shown))

    def tell(self, problem: Problem) -> None:
        """Note a problem, unless there were many before."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)
        else:
            self._untold += 1

    def _stem(self) -> str:
        return naming.path_slug(self.found.relative)
