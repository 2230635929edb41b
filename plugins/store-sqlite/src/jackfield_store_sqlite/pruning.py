"""Removing what has expired, a little at a time, so that nobody has to wait for it."""

from __future__ import annotations

import apsw

CHUNK = 1000
_EXPIRED = {
    "kept": "expires <= ?",
    "counters": "expires <= ?",
    # A claim with a note waits for a person to settle it.
    "claims": "expires <= ? AND note IS NULL",
    "entries": "expires <= ?",
}


def prune(db: apsw.Connection, now: float) -> int:
    """Remove up to a chunk of what has expired; how much that was."""
    gone = 0
    for table, expired in _EXPIRED.items():
        db.execute(
            f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {expired} LIMIT ?)",  # noqa: S608
            (now, CHUNK - gone),
        )
        gone += db.changes()
    return gone
