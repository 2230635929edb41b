"""Who holds claims: every open store has a row, renews it, and is believed dead without it."""

from __future__ import annotations

import secrets

import apsw

from jackfield_store_sqlite import clock
from jackfield_store_sqlite.machine import Machine, Process, is_gone, this_process


class Owner:
    """One open store among those of all processes."""

    def __init__(self, machine: Machine, lease: float) -> None:
        self.id = secrets.token_hex(8)
        self.lease = lease
        self._boot = machine.boot
        self._process = this_process()

    def renew(self, db: apsw.Connection, now: float) -> None:
        """Say that one lives, for the length of a lease; and that it was this late."""
        me = self._process
        db.execute(
            "INSERT OR REPLACE INTO owners (id, boot, pid, started, namespace, lease) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (self.id, self._boot, me.pid, me.started, me.namespace, now + self.lease),
        )
        clock.record(db, now)

    def resign(self, db: apsw.Connection, now: float) -> None:
        """Say that one lives no more; claims still held are in doubt from now on."""
        db.execute("DELETE FROM owners WHERE id = ?", (self.id,))
        clock.record(db, now)

    def believes_dead(self, db: apsw.Connection, now: float, owner: str) -> bool:
        """Whether the holder of a claim is dead for all anyone can tell."""
        if owner == self.id:
            return False
        row = db.execute("SELECT boot, pid, started, namespace, lease FROM owners WHERE id = ?", (owner,)).get
        if row is None:
            return True
        boot, pid, started, namespace, lease = row
        return lease <= now or boot != self._boot or is_gone(Process(pid, started, namespace), self._process)

    def forget_the_dead(self, db: apsw.Connection, now: float) -> None:
        """Remove the rows of the dead: without one they are as dead as with an old one."""
        for (owner,) in db.execute("SELECT id FROM owners").fetchall():
            if self.believes_dead(db, now, str(owner)):
                db.execute("DELETE FROM owners WHERE id = ?", (owner,))
