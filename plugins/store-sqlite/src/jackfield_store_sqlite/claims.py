"""Claims, in SQL: what a row means depends on who holds it and whether that one lives."""

from __future__ import annotations

import apsw
from jackfield.store import Claim, ClaimState

from jackfield_store_sqlite.owners import Owner

RUN, RUNNING = Claim(ClaimState.RUN), Claim(ClaimState.RUNNING)
IN_DOUBT, CONFLICT, FREE = Claim(ClaimState.IN_DOUBT), Claim(ClaimState.CONFLICT), Claim(ClaimState.FREE)
_NOBODY = ""


def known(db: apsw.Connection, now: float, key: str, fingerprint: bytes, owner: Owner) -> Claim | None:
    """What a claim comes to that others made before; nothing when it has yet to be made."""
    row = db.execute(
        "SELECT fingerprint = ?, owner, result FROM claims "
        "WHERE key = ? AND (expires IS NULL OR expires > ?)",
        (fingerprint, key, now),
    ).get
    if row is None:
        return None
    same, holder, result = row
    return _meaning(db, now, holder, result, owner) if same else CONFLICT


def claim(
    db: apsw.Connection, now: float, key: str, fingerprint: bytes, *, expires: float | None, owner: Owner
) -> Claim:
    """Be the first, or learn what became of the one who was."""
    found = known(db, now, key, fingerprint, owner)
    if found is not None:
        return found
    db.execute(
        "INSERT OR REPLACE INTO claims (key, fingerprint, owner, expires) VALUES (?, ?, ?, ?)",
        (key, fingerprint, owner.id, expires),
    )
    return RUN


def state(db: apsw.Connection, now: float, key: str, owner: Owner) -> Claim:
    """What became of a claim so far."""
    row = db.execute(
        "SELECT owner, result FROM claims WHERE key = ? AND (expires IS NULL OR expires > ?)", (key, now)
    ).get
    return FREE if row is None else _meaning(db, now, row[0], row[1], owner)


def _meaning(db: apsw.Connection, now: float, holder: str, result: bytes | None, owner: Owner) -> Claim:
    if result is not None:
        return Claim(ClaimState.DONE, result)
    return IN_DOUBT if owner.believes_dead(db, now, holder) else RUNNING


def reclaim(db: apsw.Connection, now: float, key: str, owner: Owner) -> bool:
    """Take over what is in doubt; the transaction around it lets one succeed."""
    if state(db, now, key, owner) is not IN_DOUBT:
        return False
    db.execute("UPDATE claims SET owner = ? WHERE key = ?", (owner.id, key))
    return True


def disown(db: apsw.Connection, key: str, owner: Owner) -> None:
    """Put a claim that one took over back in doubt."""
    db.execute(
        "UPDATE claims SET owner = ? WHERE key = ? AND owner = ? AND result IS NULL",
        (_NOBODY, key, owner.id),
    )


def complete(db: apsw.Connection, now: float, key: str, result: bytes, owner: Owner) -> bool:
    """Record a result; whether one still held the claim."""
    db.execute(
        "UPDATE claims SET result = ? WHERE key = ? AND owner = ? AND result IS NULL "
        "AND (expires IS NULL OR expires > ?)",
        (result, key, owner.id, now),
    )
    return db.changes() == 1


def release(db: apsw.Connection, key: str, owner: Owner) -> None:
    """Forget a claim that one holds and has not run."""
    db.execute("DELETE FROM claims WHERE key = ? AND owner = ? AND result IS NULL", (key, owner.id))
