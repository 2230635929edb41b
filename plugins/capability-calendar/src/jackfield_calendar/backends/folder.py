"""Folder backend: a directory of .ics files, one event per file."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar

from icalendar import Event
from jackfield.atomic_files import acquire_lock, flush_directory, write_atomically

from jackfield_calendar import tool_errors
from jackfield_calendar.backend import (
    BookedEvent,
    DeduplicatedWarnings,
    NewEvent,
    Occurrence,
    OccurrenceList,
    TimeRange,
    clash,
)
from jackfield_calendar.ical.occurrences import Occurrences, Zones
from jackfield_calendar.ical.parser import MOST_BYTES, ParsedCalendar, read
from jackfield_calendar.ical.serializer import booked_event, cancelled, next_sequence, write

_log = logging.getLogger("jackfield_calendar")

PATIENCE_SECONDS = 5.0
"""How long a booking waits for the lock."""

_LOCK = ".jackfield.lock"
_UNFINISHED = ".jackfield-unfinished-"

Stamp = tuple[int, int, int]
_A = TypeVar("_A")
_R = TypeVar("_R")


class _CachedFile(NamedTuple):
    """A parsed file and the stamp it had when it was read."""

    path: Path
    sheet: ParsedCalendar
    occurrences: Occurrences
    stamp: Stamp


class FolderCalendar:
    """The calendar of one directory; files are parsed in threads and cached until they change."""

    makes_meetings = False

    def __init__(self, name: str, path: str, zones: Zones) -> None:
        self._name = name
        self._folder = Path(path).expanduser()
        self._zones = zones
        self._pages: dict[str, _CachedFile] = {}
        self._reading = Lock()
        self._notices = DeduplicatedWarnings()

    async def taken(self, span: TimeRange, *, details: bool) -> OccurrenceList:  # noqa: ARG002 - always included
        """Return the occurrences in a time range."""
        return await self._in_thread(self._look, span, writing=False)

    async def book(self, event: NewEvent) -> BookedEvent:
        """Write an event if its time is free, under the lock of the folder."""
        return await self._in_thread(self._write, event, writing=True)

    async def close(self) -> None:
        """Do nothing; no file stays open."""

    async def _in_thread(self, work: Callable[[_A], _R], argument: _A, *, writing: bool) -> _R:
        try:
            return await asyncio.to_thread(work, argument)
        except TimeoutError:
            raise tool_errors.unreachable(
                self._name, "another booking is taking too long", writing=False
            ) from None
        except OSError as error:
            # The path goes to the log only.
            _log.error("the %s calendar in %s: %s", self._name, self._folder, error)
            raise tool_errors.unreachable(
                self._name, f"its folder: {error.strerror}", writing=writing
            ) from None

    def _look(self, span: TimeRange) -> OccurrenceList:
        taken: list[Occurrence] = []
        unreadable = 0
        for page in self._read():
            found = page.occurrences.within(span)
            taken += found.taken
            unreadable += len(found.faults)
            for fault in found.faults:
                self._notices.log(str(page.path), fault)
        return OccurrenceList(taken, unreadable)

    def _write(self, event: NewEvent) -> BookedEvent:
        _make_directory(self._folder)
        with _locked(self._folder):
            before = self._find(event.uid)
            if before is not None and not cancelled(before):
                return booked_event(before, self._zones)
            found = self._look(event.span)
            if taken := clash(event, found.taken):
                raise tool_errors.conflict(
                    taken.start.astimezone(event.start.tzinfo), taken.end.astimezone(event.start.tzinfo)
                )
            name = f"{hashlib.sha256(event.uid.encode()).hexdigest()[:40]}.ics"
            text = write(event, sequence=next_sequence(before) if before is not None else 0)
            _write_file(self._folder / name, text)
        return BookedEvent(event.uid, event.start, event.end, event.meeting_url, unreadable=found.unreadable)

    def _find(self, uid: str) -> Event | None:
        found = (page.sheet.find(uid) for page in self._read())
        return next((event for event in found if event is not None), None)

    def _read(self) -> list[_CachedFile]:
        with self._reading:
            pages = {page.path.name: page for page in self._changed()}
            self._pages = pages
            return list(pages.values())

    def _changed(self) -> Iterator[_CachedFile]:
        _make_directory(self._folder)
        with os.scandir(self._folder) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.name.endswith(".ics") and not entry.name.startswith(".") and entry.is_file()
            )
        for name in names:
            path = self._folder / name
            try:
                found = path.stat()
                stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
                known = self._pages.get(name)
                if known is None or known.stamp != stamp:
                    sheet = _read_file(path)
                    known = _CachedFile(path, sheet, Occurrences(sheet, self._zones), stamp)
                yield known
            except FileNotFoundError:
                # Deleted in the meantime.
                continue


def _read_file(path: Path) -> ParsedCalendar:
    try:
        with path.open("rb") as file:
            return read(file.read(MOST_BYTES + 1))
    except FileNotFoundError:
        raise
    except OSError as error:
        return ParsedCalendar(faults=(f"it cannot be opened: {error.strerror}",))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the write lock of a folder; raise `TimeoutError` if another process holds it too long."""
    descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        if not acquire_lock(descriptor, PATIENCE_SECONDS):
            raise TimeoutError(f"{folder} is locked by another process")
        yield
    finally:
        os.close(descriptor)


def _write_file(path: Path, content: bytes) -> None:
    """Write a file into a locked folder, and remove leftovers of a process that died while writing."""
    for left in path.parent.glob(f"{_UNFINISHED}*"):
        left.unlink(missing_ok=True)
    write_atomically(path, content, temporary=path.with_name(f"{_UNFINISHED}{path.name}"))


def _make_directory(folder: Path) -> None:
    """Create a directory and its missing parents, readable by the owner only."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(0o700, exist_ok=True)
        flush_directory(missing.parent)
