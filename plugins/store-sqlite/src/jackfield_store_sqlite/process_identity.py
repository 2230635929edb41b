"""Process identity, claim owners with their leases, and the store's clock.

The store's time is anchored in the file once per boot and then advances with the machine's uptime. All
processes read the same anchor, so they agree on the time, and changes of the wall clock do not affect it.
After a boot, a new anchor starts at the wall clock's time, but never before a time that the store has used.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import apsw

_PROC = Path("/proc")


# CLOCK_BOOTTIME also counts while the machine sleeps; it exists on Linux only.
_uptime = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class Machine:
    """The store's machine: boot id and clocks."""

    boot: str
    uptime: Callable[[], float] = _uptime
    wall: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Process:
    """A process; the start time distinguishes it from a later one with the same pid."""

    pid: int
    started: str
    namespace: str


@cache
def this_machine() -> Machine:
    """Return the current machine."""
    try:
        return Machine(_PROC.joinpath("sys/kernel/random/boot_id").read_text().strip())
    except OSError:
        return Machine("")


def this_process() -> Process:
    """Return the current process."""
    try:
        namespace = str(_PROC.joinpath("self/ns/pid").readlink())
    except OSError:
        namespace = ""
    pid = os.getpid()
    return Process(pid, _started(pid) or "", namespace)


def has_exited(process: Process, seen_from: Process) -> bool:
    """True if a process of this boot has certainly exited."""
    if process.namespace != seen_from.namespace:
        return False  # In another container, the same pid is another process.
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # The process runs under another user.
    return bool(process.started) and _started(process.pid) != process.started


def _started(pid: int) -> str | None:
    """Return when a process started, in ticks since boot; None if it has exited, even if not reaped."""
    try:
        stat = _PROC.joinpath(str(pid), "stat").read_bytes()
    except OSError:
        return None
    # The second field is the program's name, which may contain spaces and brackets.
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


class Anchor(NamedTuple):
    """One moment, as wall-clock time and as uptime."""

    wall: float
    uptime: float


def read_anchor(db: apsw.Connection, machine: Machine, lease: float) -> Anchor:
    """Return the anchor of this boot, or set one; call it inside a write transaction."""
    row = db.execute("SELECT boot, wall, uptime, latest FROM clock").get
    uptime = machine.uptime()
    if row is None:
        start = machine.wall()
    else:
        boot, wall, anchored, latest = row
        if boot == machine.boot and wall + uptime - anchored >= latest:
            return Anchor(wall, anchored)
        # A process may have used times up to one lease after the recorded one.
        start = max(machine.wall(), latest + lease)
    db.execute("INSERT OR REPLACE INTO clock VALUES (1, ?, ?, ?, ?)", (machine.boot, start, uptime, start))
    return Anchor(start, uptime)


def record_time(db: apsw.Connection, now: float) -> None:
    """Record the latest time used, for the anchor of the next boot."""
    db.execute("UPDATE clock SET latest = ? WHERE latest < ?", (now, now))


class ClaimOwner:
    """One open store; it holds claims and renews the lease that shows it is alive."""

    def __init__(self, machine: Machine, lease: float) -> None:
        self.id = secrets.token_hex(8)
        self.lease = lease
        self._boot = machine.boot
        self._process = this_process()

    def renew(self, db: apsw.Connection, now: float) -> None:
        """Renew the lease and record the time."""
        me = self._process
        db.execute(
            "INSERT OR REPLACE INTO owners (id, boot, pid, started, namespace, lease) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (self.id, self._boot, me.pid, me.started, me.namespace, now + self.lease),
        )
        record_time(db, now)

    def resign(self, db: apsw.Connection, now: float) -> None:
        """End the lease; claims still held are in doubt from now on."""
        db.execute("DELETE FROM owners WHERE id = ?", (self.id,))
        record_time(db, now)

    def is_expired(self, db: apsw.Connection, now: float, owner: str) -> bool:
        """True if the owner of a claim exited, lost its lease or belongs to another boot."""
        if owner == self.id:
            return False
        row = db.execute("SELECT boot, pid, started, namespace, lease FROM owners WHERE id = ?", (owner,)).get
        if row is None:
            return True
        boot, pid, started, namespace, lease = row
        return (
            lease <= now or boot != self._boot or has_exited(Process(pid, started, namespace), self._process)
        )

    def remove_expired(self, db: apsw.Connection, now: float) -> None:
        """Delete the rows of expired owners; an owner without a row is expired."""
        for (owner,) in db.execute("SELECT id FROM owners").fetchall():
            if self.is_expired(db, now, str(owner)):
                db.execute("DELETE FROM owners WHERE id = ?", (owner,))
