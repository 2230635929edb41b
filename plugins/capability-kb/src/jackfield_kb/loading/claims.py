"""Two files, one id: who keeps it.

The file that has an id keeps it, unless it is gone. An id that was made from a name gives way to another;
one that a document states is refused, and both files are named. A personal record stays personal until
somebody says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jackfield_kb.library import Library, Source
from jackfield_kb.loading import naming
from jackfield_kb.loading.drafts import Made
from jackfield_kb.loading.problems import Problem
from jackfield_kb.loading.reading import Reading
from jackfield_kb.records.statements import Holder

UNFINISHED = "unfinished:"
"""Before the digest of a file of which something could not be loaded: it is read again the next time."""


@dataclass(slots=True)
class Part:
    """The records of one source that wait to be written."""

    source: Source
    reading: Reading
    made: list[Made]

    def other_id(self, made: Made) -> str:
        """What a made-up id gives way to."""
        return f"{made.record.id}-{naming.mark(self.source.uri)}"


@dataclass(slots=True)
class Claims:
    """The ids of one batch."""

    library: Library
    parts: Sequence[Part]
    drops: list[str]
    """Sources that go; those whose file is gone and whose record another file has are added."""

    holders: Mapping[str, Holder]
    """Whose the ids are so far."""

    _taken: dict[str, str] = field(default_factory=dict)

    def settle(self) -> None:
        """Leave each id to one source."""
        for part in self.parts:
            uri = part.source.uri
            ids = (made.record.id for made in part.made)
            kept = (id_ for id_ in ids if id_ in self.holders and self.holders[id_].uri == uri)
            self._taken |= dict.fromkeys(kept, uri)
        for part in self.parts:
            part.made = [settled for made in part.made if (settled := self._settled(part, made))]

    def _settled(self, part: Part, made: Made) -> Made | None:
        rival = self._rival(made.record.id, part.source.uri)
        if rival is not None and _is_gone(rival):
            self.drops.append(rival)
            rival = None
        if rival is not None and not made.given_id:
            made = replace(made, record=replace(made.record, id=part.other_id(made)))
            rival = self._rival(made.record.id, part.source.uri)
        if rival is not None:
            what = f"its record {made.record.id} comes from {file_of(rival) or rival} already"
            _refuse(part, made, what, "give one of them another `id`, or remove one")
            return None
        if owner := self._exposed(made):
            what = (
                f"its record {made.record.id} is personal to {owner} so far, and would be seen by others now"
            )
            _refuse(part, made, what, f"load it with --owner {owner}, or say with --namespace who may see it")
            made = replace(made, record=self.library.get([made.record.id])[0])
        self._taken[made.record.id] = part.source.uri
        return made

    def _exposed(self, made: Made) -> str | None:
        """Whose a personal record is that would become everybody's only because nobody said otherwise."""
        known = self.holders.get(made.record.id)
        return known.owner if known and not made.given_namespace else None

    def _rival(self, id_: str, uri: str) -> str | None:
        """The other source that has an id; none when that one is about to let it go."""
        known = self.holders.get(id_)
        holder = self._taken.get(id_) or (known and known.uri)
        if holder is None or holder == uri:
            return None
        leaving = holder in self.drops or any(part.source.uri == holder for part in self.parts)
        return None if leaving and id_ not in self._taken else holder


def _refuse(part: Part, made: Made, what: str, mend: str) -> None:
    digest = part.source.digest.removeprefix(UNFINISHED)
    part.source = part.source._replace(digest=f"{UNFINISHED}{digest}")
    part.reading.records -= 1
    part.reading.tell(Problem(part.reading.found.shown, what, mend, made.line))


def file_of(uri: str) -> Path | None:
    """The file that a source names; None for records without a file."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path, errors="surrogateescape")) if parts.scheme == "file" else None


def _is_gone(holder: str) -> bool:
    file = file_of(holder)
    return file is not None and not file.exists()
