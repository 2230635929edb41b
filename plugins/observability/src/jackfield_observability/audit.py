"""The audit: one line of JSON for every call, written by a thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from jackfield.contract.response import ToolResponse
from jackfield.governance import Call
from jackfield.settings import SettingsError

from jackfield_observability import record
from jackfield_observability.audit_file import AuditFile
from jackfield_observability.audit_tail import Record, Tail, read_tail
from jackfield_observability.off_path import QUEUE_LIMIT, OffPath
from jackfield_observability.settings import AuditSettings

PENDING_BYTES = 16 * 1024 * 1024
"""How much of what cannot be written is kept until it can."""

# Written out as soon as there is so much: less would be many small writes, each with a lock around it, more
# would be memory that a busy host has not used before.
_WRITE_BYTES = 256 * 1024

_COMPLAINT_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Audit(OffPath[record.Line | record.Marked]):
    """Writes a line for every call, and a line in place of those it had to drop."""

    def __init__(self, settings: AuditSettings | None = None) -> None:
        settings = settings or AuditSettings()
        self._file = AuditFile(_place(settings.path), settings.max_bytes, settings.backups)
        # Opened at once: a path that cannot be written is for whoever starts the host to mend.
        try:
            self._file.open()
        except OSError as error:
            raise SettingsError(f"[observers.audit] path: {self._file.path}: {error.strerror}") from None
        self._backups = settings.backups
        self._records = record.Records(arguments=settings.arguments)
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._lost = 0
        self._reported = 0
        self._next_complaint = 0.0
        self._failing = False
        super().__init__("audit")

    @property
    def dropped(self) -> int:
        """How many lines were dropped since the start."""
        return self.overflowed + self._lost

    def call_finished(self, call: Call, response: ToolResponse) -> None:
        """Write down a call; on the path of every call, so whatever may take long is left to the thread.

        A line is made at once, while all it speaks of is at hand: to keep the facts for later, and to look
        at each of them again then, costs more.
        """
        waiting = self.waiting
        if len(waiting) < QUEUE_LIMIT:
            waiting.append(self._records.call(call, response))
        else:
            self.overflowed += 1

    def tail(
        self, limit: int, *, tool: str | None = None, session: str | None = None, ok: bool | None = None
    ) -> Tail:
        """The latest lines, all or those of a tool, a session or an outcome; reads files, so in a thread."""
        self.drain()
        wanted = {"tool": tool, "session": session, "ok": ok}
        asked = {name: value for name, value in wanted.items() if value is not None}

        def fits(line: Record) -> bool:
            return all(name in line and line[name] == value for name, value in asked.items())

        return read_tail(self._file.path, self._backups, limit, fits)

    def receive(self, items: Sequence[record.Line | record.Marked]) -> None:
        """Finish lines, and hold them until they are written."""
        parts = chain.from_iterable(
            (self._finished(item),) if isinstance(item, record.Marked) else item for item in items
        )
        lines = b"".join(parts)
        room = PENDING_BYTES - self._pending_bytes
        if len(lines) > room:
            end = lines.rfind(b"\n", 0, room) + 1
            self._lost += _count(lines[end:])
            lines = lines[:end]
        self._pending.append(lines)
        self._pending_bytes += len(lines)
        if self._pending_bytes >= _WRITE_BYTES and not self._failing:
            self.settle()

    def _finished(self, marked: record.Marked) -> bytes:
        try:
            return self._records.finish(marked)
        except Exception:  # noqa: BLE001 - notes are somebody else's objects, which may do anything
            _log.exception("audit: no line could be made of a call of %s", marked.call.tool.id)
            self._lost += 1
            return b""

    def settle(self) -> None:
        """Write the lines that wait, then say how many are missing after them."""
        dropped = self.dropped
        missing = dropped - self._reported
        lines = b"".join(self._pending) + (record.dropped(missing) if missing else b"")
        if not lines:
            return
        written, fault = self._file.append(lines)
        if missing and written == len(lines):
            self._reported = dropped
        # What says how many are missing is written anew, because by then more may be.
        left = lines[written : self._pending_bytes]
        self._pending = [left] if left else []
        self._pending_bytes = len(left)
        self._tell(fault, missing)

    def forget(self) -> None:
        """A forked child writes to the same file, but not what its parent already holds."""
        self._file.close()
        self._pending.clear()
        self._pending_bytes = self._lost = self._reported = 0

    def _tell(self, fault: OSError | None, missing: int) -> None:
        """Log that lines cannot be written, are missing, or are written again; not with every line."""
        due = time.monotonic() >= self._next_complaint
        if fault is None and (self._failing or (missing and due)):
            _log.warning("audit: %s is written; %d lines before are missing", self._file.path, missing)
        elif fault is not None and (not self._failing or due):
            _log.error(
                "audit: %s cannot be written (%s); %d lines wait, %d were dropped",
                self._file.path, fault.strerror or fault, sum(map(_count, self._pending)), missing,
            )  # fmt: skip
        else:
            return
        self._failing = fault is not None
        self._next_complaint = time.monotonic() + _COMPLAINT_SECONDS

    def _end(self) -> None:
        super()._end()
        self._file.close()


def _place(path: Path) -> Path:
    """Where the lines really go, whatever becomes of the working folder.

    A link to a file is followed once: rotation would rename the link, and not the file it leads to. What
    `/dev/stdout` leads to may have no name that could be opened.
    """
    real = path.resolve()
    return real if real.is_file() or not path.exists() else path.absolute()


def _count(lines: bytes) -> int:
    return lines.count(b"\n")
