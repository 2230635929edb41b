"""Updates a library from files: only changed files are read, and progress is reported once it is on disk."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from jackfield_kb.errors import LibraryError
from jackfield_kb.library import Library, Source
from jackfield_kb.loader.batch import UNFINISHED, BatchWriter, PendingRecords, file_of
from jackfield_kb.loader.documents import Problem, UnreadableFileError, opened
from jackfield_kb.loader.drafts import LoadedRecord, LoadOptions
from jackfield_kb.loader.file_reader import FileReader
from jackfield_kb.loader.scan import FileScan, ScannedFile, walk


@dataclass(slots=True)
class LoadSummary:
    """The result of a load: counts, problems and notes."""

    files: int = 0
    """Files with a supported format."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    gone: int = 0
    """Loaded files that no longer exist; their records stay until a load with `--sync`."""

    records: int = 0
    """Records written by this load."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    """Notes that are not errors; `remedy` may be empty."""

    failed: int = 0
    """Files from which nothing could be loaded."""

    unknown: Counter[str] = field(default_factory=Counter)
    hidden: int = 0
    links: int = 0
    interrupted: bool = False
    dry_run: bool = False

    @property
    def done(self) -> int:
        """The number of processed files."""
        return self.added + self.changed + self.unchanged + self.failed

    def as_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        return {
            "files": self.files,
            "added": self.added,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "removed": self.removed,
            "gone": self.gone,
            "failed": self.failed,
            "records": self.records,
            "skipped": {"unknown": dict(self.unknown), "hidden": self.hidden, "links": self.links},
            "problems": [problem._asdict() for problem in self.problems],
            "notes": [{"path": note.path, "note": note.what, "line": note.line} for note in self.notes],
            "interrupted": self.interrupted,
            "dryRun": self.dry_run,
        }


class StoppedError(Exception):
    """Indexing was interrupted; the records are saved, and the next load indexes the rest."""


class Listener(Protocol):
    """Receives the progress of a load."""

    def progressed(self, summary: LoadSummary) -> None:
        """Called after more files were loaded and saved."""

    def indexed(self, done: int, total: int) -> None:
        """Called after more records were indexed."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The options of a load."""

    options: LoadOptions = LoadOptions()  # noqa: RUF009 - immutable
    sync: bool = False
    dry_run: bool = False


class LoadRun:
    """One load of some paths into a library."""

    def __init__(
        self, library: Library, plan: LoadPlan, listener: Listener, stopped: Callable[[], bool]
    ) -> None:
        self.summary = LoadSummary(dry_run=plan.dry_run)
        self._library = library
        self._plan = plan
        self._listener = listener
        self._stopped = stopped
        self._shelf = BatchWriter(library)
        self._known: dict[str, dict[str, Source]] = defaultdict(dict)
        """The sources of each file, by the URI of the file."""

    def run(self, paths: Sequence[Path]) -> LoadSummary:
        """Load all files below the paths; reported progress is saved even if the load is interrupted."""
        try:
            with self._alone(paths):
                self._load(paths)
        except LibraryError as error:
            remedy = "fix it and run the same command again; loaded files are not read again"
            self.summary.problems.append(Problem(self._library.place, str(error), remedy))
        return self.summary

    def _alone(self, paths: Sequence[Path]) -> AbstractContextManager[None]:
        if self._plan.dry_run:
            return nullcontext()
        return self._library.loading([path.resolve().as_uri() for path in paths])

    def _load(self, paths: Sequence[Path]) -> None:
        for uri, source in self._library.sources().items():
            self._known[uri.partition("#")[0]][uri] = source
        found = walk(paths, self._library.folder)
        self._begin(found)
        self._files(found)
        if not self._plan.dry_run and not self.summary.interrupted:
            self._index()

    def _files(self, found: FileScan) -> None:
        for file in self._as_before(found.files):
            self._file(file)
            if self._shelf.is_full:
                self._write()
            if self._stopped():
                self.summary.interrupted = True
                break
        else:
            self._follow_deletions(found)
        self._write()

    def _index(self) -> None:
        try:
            self._library.refresh(self._indexed)
        except StoppedError:
            self.summary.interrupted = True

    def _indexed(self, done: int, total: int) -> None:
        self._listener.indexed(done, total)
        if done < total and self._stopped():
            raise StoppedError

    def _begin(self, found: FileScan) -> None:
        summary = self.summary
        summary.files = len(found.files)
        summary.unknown, summary.hidden, summary.links = found.unknown, found.hidden, found.links
        summary.problems += found.problems
        self._listener.progressed(summary)

    def _as_before(self, files: Sequence[ScannedFile]) -> Iterator[ScannedFile]:
        """Yield files relative to the folder of their first load, so that records keep their ids."""
        folders = {file.named for file in files if file.named != file.path}
        for uri, parts in self._known.items():
            folders |= {
                Path(str(file_of(source.collection))) for source in parts.values() if source.collection != uri
            }
        for file in files:
            before = self._known.get(file.uri, {}).get(file.uri)
            above = [folder for folder in file.path.parents if folder in folders]
            named = file_of(before.collection) if before else above[-1] if above else None
            yield replace(file, named=named or file.path)

    def _file(self, file: ScannedFile) -> None:
        try:
            with opened(file.path, file.format.limit) as document:
                reading = FileReader(file, self._plan.options, document)
                digest = reading.digest()
                known = self._known.get(file.uri, {})
                if file.uri in known and all(source.digest == digest for source in known.values()):
                    self.summary.unchanged += 1
                else:
                    self._read(reading, digest, known)
        except (UnreadableFileError, OSError) as error:
            self._failed(file, error)

    def _read(self, reading: FileReader, digest: str, known: dict[str, Source]) -> None:
        """Add the parts of a file to the batch; the file's own source comes last and marks it as complete."""
        file = reading.found
        # In a changed file, records may have moved between parts, so its parts are written together.
        apart = all(source.digest == digest for source in known.values())
        last: list[LoadedRecord] = []
        uris: list[str] = []
        for made in reading.parts():
            if last:
                uris.append(f"{file.uri}#{len(uris) + 1}")
                self._put(uris[-1], digest, reading, last)
                if apart:
                    self._write()
                    if self._stopped():
                        return
            last = made
        if not reading.records:
            self._loaded(reading, is_new=False)
            return
        self._put(file.uri, f"{UNFINISHED}{digest}" if reading.problems else digest, reading, last)
        self._drop(known.keys() - {file.uri, *uris})
        self._shelf.then(lambda: self._loaded(reading, is_new=file.uri not in known))

    def _put(self, uri: str, digest: str, reading: FileReader, made: list[LoadedRecord]) -> None:
        if not self._plan.dry_run:
            self._shelf.put(PendingRecords(Source(uri, digest, reading.found.named.as_uri()), reading, made))

    def _drop(self, uris: Iterable[str]) -> None:
        if not self._plan.dry_run:
            for uri in uris:
                self._shelf.drop(uri)

    def _loaded(self, reading: FileReader, *, is_new: bool) -> None:
        self.summary.problems += reading.reported()
        self.summary.notes += reading.notes
        self.summary.records += reading.records
        if not reading.records:
            self.summary.failed += 1
        elif is_new:
            self.summary.added += 1
        else:
            self.summary.changed += 1

    def _failed(self, file: ScannedFile, error: UnreadableFileError | OSError) -> None:
        if isinstance(error, OSError):
            error = UnreadableFileError(f"it cannot be read ({error.strerror})", "check the disk")
        self.summary.problems.append(error.at(file.shown))
        self.summary.failed += 1

    def _write(self) -> None:
        self._shelf.write()
        self._listener.progressed(self.summary)

    def _follow_deletions(self, found: FileScan) -> None:
        files = {path: uri for uri in self._known if (path := file_of(uri)) is not None}
        for root, gone in found.lost(files):
            if not self._plan.sync:
                self.summary.gone += len(gone)
            elif found.is_bare(root):
                what = f"all files loaded from this path ({len(gone)}) are missing, so nothing was removed"
                remedy = "check whether a disk is missing; `jackfield kb remove --from PATH` removes them all"
                self.summary.problems.append(Problem(str(root), what, remedy))
            else:
                self._drop(uri for path in gone for uri in self._known[files[path]])
                self._shelf.then(partial(self._removed, len(gone)))

    def _removed(self, count: int) -> None:
        self.summary.removed += count
