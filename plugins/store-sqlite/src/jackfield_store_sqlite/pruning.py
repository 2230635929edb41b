"""Removing what has expired, a little at a time, so that nobody has to wait for it."""

from __future__ import annotations

import apsw

CHUNK = 1000
_TABLES = ("kept", "counters", "claims", "entries")


def prune(db: apsw.Connection, now: float) -> int:
    """Remove up to a chunk of what has expired; how much that was."""
    gone = 0
    for table in _TABLES:
        db.execute(
            f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE expires <= ? LIMIT ?)",  # noqa: S608
            (now, CHUNK - gone),
        )
        gone += db.changes()
    return gone
