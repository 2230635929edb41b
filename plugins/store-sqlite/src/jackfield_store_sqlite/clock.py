"""The store's time: anchored once a boot in the file, then counted by the machine's uptime.

Every process of the file reads the same anchor, so all agree on the time, and no change of the wall clock
moves it. After a boot the uptime starts anew and so does the anchor, at the wall clock but never before a
time that was told already.
"""

from __future__ import annotations

from typing import NamedTuple

import apsw

from jackfield_store_sqlite.machine import Machine


class Anchor(NamedTuple):
    """A moment by both clocks."""

    wall: float
    uptime: float


def anchor(db: apsw.Connection, machine: Machine, lease: float) -> Anchor:
    """The anchor of this boot, set if there is none yet; call it inside of a transaction that writes."""
    row = db.execute("SELECT boot, wall, uptime, latest FROM clock").get
    uptime = machine.uptime()
    if row is None:
        start = machine.wall()
    else:
        boot, wall, anchored, latest = row
        if boot == machine.boot and wall + uptime - anchored >= latest:
            return Anchor(wall, anchored)
        # Whoever lived told at most a lease more than it recorded.
        start = max(machine.wall(), latest + lease)
    db.execute("INSERT OR REPLACE INTO clock VALUES (1, ?, ?, ?, ?)", (machine.boot, start, uptime, start))
    return Anchor(start, uptime)


def record(db: apsw.Connection, now: float) -> None:
    """Remember that this time was told, for the boot to come."""
    db.execute("UPDATE clock SET latest = ? WHERE latest < ?", (now, now))
