"""The full-text index on disk: one writer at a time, any number of readers in any process.

`current.json` names the folder that is in use, how far it has followed the truth, and a checksum of each of
its files. Tantivy never changes a file once it is written, so a file that does not match is damaged. A
rebuild fills a new folder and switches over when it is complete; readers go on with the old one until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import tantivy

from jackfield_kb.errors import DamagedIndexError
from jackfield_kb.files import checksum, read_json
from jackfield_kb.generations import Generations, incomplete
from jackfield_kb.text import analysis, fields
from jackfield_kb.truth.reading import Numbered, Position

_WRITER_BYTES = 64_000_000


class TextState(NamedTuple):
    """What `current.json` says."""

    folder: str
    position: Position
    seals: dict[str, int]


class TextIndex(Generations):
    """The folder `text` of a library."""

    def state(self) -> TextState | None:
        """How far the index has come; None when there is none, `DamagedIndexError` when it is unreadable."""
        said = self._said()
        if said is None:
            return None
        try:
            return TextState(str(said["folder"]), Position(*said["position"]), dict(said["seals"]))
        except (KeyError, TypeError) as error:
            raise incomplete(error) from None

    def open(self, state: TextState, *, check: bool) -> tantivy.Index:
        """The index of a state, for reading or for writing; `check` compares every file with its checksum."""
        folder = self.folder / state.folder
        if check:
            _check(folder, state.seals)
        with damage_reported():
            index = tantivy.Index.open(str(folder))
        return _prepared(index)

    def start_anew(self) -> TextState:
        """An empty folder for a rebuild; it is not in use before something is recorded."""
        name = self._new_generation()
        with damage_reported():
            tantivy.Index(fields.schema(), path=str(self.folder / name))
        return TextState(name, Position(), {})

    def record(self, state: TextState, position: Position) -> TextState:
        """Make what was committed the index that is in use."""
        seals = _sealed(self.folder / state.folder, state.seals)
        self._say({"folder": state.folder, "position": position, "seals": seals})
        return TextState(state.folder, position, seals)

    def tidy(self, state: TextState) -> None:
        """Remove the folders that are no longer in use."""
        self._keep_only(state.folder)


def add(writer: tantivy.IndexWriter, items: Iterable[Numbered]) -> int:
    """Add records that may be there already, from a refresh that was cut short; how many passages."""
    count = 0
    for item in items:
        writer.delete_documents_by_term(fields.RECORD, item.number)
        for document in fields.documents(item):
            writer.add_document(document)
            count += 1
    return count


def remove(writer: tantivy.IndexWriter, numbers: Iterable[int]) -> None:
    """Take away the passages of records."""
    for number in numbers:
        writer.delete_documents_by_term(fields.RECORD, number)


def writer(index: tantivy.Index) -> tantivy.IndexWriter:
    """The one who writes; a second one is refused by tantivy's own lock."""
    with damage_reported():
        return index.writer(_WRITER_BYTES, 1)


@contextmanager
def damage_reported() -> Iterator[None]:
    """Turn what tantivy raises, its panics among it, into `DamagedIndexError`."""
    try:
        yield
    except BaseException as error:
        # A panic is no Exception, and its class cannot be imported.
        if isinstance(error, ValueError | OSError | RuntimeError) or type(error).__name__ == "PanicException":
            first = str(error).strip().splitlines() or [type(error).__name__]
            raise DamagedIndexError(first[0]) from error
        raise


def _prepared(index: tantivy.Index) -> tantivy.Index:
    index.register_tokenizer(analysis.NAME, analysis.analyzer())
    # Readers look at `current.json` and reload when it says so; a thread that watches would be one more.
    index.config_reader("manual")
    return index


def _sealed(folder: Path, known: dict[str, int]) -> dict[str, int]:
    """The checksums of all files that are complete."""
    # Tantivy merges beside us: what it does not list is being written, and what it lists may go any moment.
    listed = {each["segment_id"].replace("-", "") for each in read_json(folder / "meta.json")["segments"]}
    seals = {}
    for path in folder.iterdir():
        if path.name.partition(".")[0] in listed:
            with suppress(FileNotFoundError):
                seals[path.name] = known.get(path.name) or checksum(path)
    return seals


def _check(folder: Path, seals: dict[str, int]) -> None:
    for name, seal in seals.items():
        try:
            # A file that is gone was merged into another, or is missed by tantivy itself when it opens.
            if checksum(folder / name) != seal:
                raise DamagedIndexError(f"{name} does not match its checksum")
        except FileNotFoundError:
            continue
