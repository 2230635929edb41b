"""Claims, in SQL: what a row means depends on who holds it and whether that one lives."""

from __future__ import annotations

from typing import Any

import apsw
from jackfield.store import Claim, ClaimState, Doubt

from jackfield_store_sqlite.owners import Owner

RUN, RUNNING = Claim(ClaimState.RUN), Claim(ClaimState.RUNNING)
IN_DOUBT, CONFLICT, FREE = Claim(ClaimState.IN_DOUBT), Claim(ClaimState.CONFLICT), Claim(ClaimState.FREE)
_NOBODY = ""


_KEPT = "(expires IS NULL OR expires > ? OR note IS NOT NULL)"
"""Which claims count: those whose time has not passed, and those that a person has to settle."""


def known(db: apsw.Connection, now: float, key: str, fingerprint: bytes, owner: Owner) -> Claim | None:
    """The state of a claim that was made before; None when it has yet to be made."""
    row = db.execute(
        f"SELECT fingerprint = ?, owner, result FROM claims WHERE key = ? AND {_KEPT}",  # noqa: S608
        (fingerprint, key, now),
    ).get
    if row is None:
        return None
    same, holder, result = row
    return _meaning(db, now, holder, result, owner) if same else CONFLICT


def claim(
    db: apsw.Connection,
    now: float,
    key: str,
    fingerprint: bytes,
    *,
    expires: float | None,
    owner: Owner,
    note: bytes = b"",
    result: bytes | None = None,
) -> Claim:
    """Make a claim, or return the state of the one that was made before."""
    found = known(db, now, key, fingerprint, owner)
    if found is not None:
        return found
    db.execute(
        "INSERT OR REPLACE INTO claims (key, fingerprint, owner, result, expires, note) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (key, fingerprint, owner.id, result, expires, note if note and result is None else None),
    )
    return RUN


def state(db: apsw.Connection, now: float, key: str, owner: Owner) -> Claim:
    """The state of a claim."""
    row = db.execute(
        f"SELECT owner, result FROM claims WHERE key = ? AND {_KEPT}",  # noqa: S608
        (key, now),
    ).get
    return FREE if row is None else _meaning(db, now, row[0], row[1], owner)


def holds(db: apsw.Connection, now: float, key: str, owner: Owner) -> bool:
    """Whether this owner holds a claim that has no result yet."""
    row = db.execute(
        f"SELECT owner FROM claims WHERE key = ? AND result IS NULL AND {_KEPT}",  # noqa: S608
        (key, now),
    ).get
    return bool(row == owner.id)


def in_doubt(db: apsw.Connection, now: float, prefix: str, owner: Owner) -> list[Doubt]:
    """The claims with a note whose holders are dead."""
    rows: list[Any] = db.execute(
        "SELECT key, owner, note FROM claims WHERE note IS NOT NULL AND result IS NULL "
        "AND key >= ? AND substr(key, 1, ?) = ? ORDER BY key",
        (prefix, len(prefix), prefix),
    ).fetchall()
    return [Doubt(key, note) for key, holder, note in rows if owner.believes_dead(db, now, holder)]


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
    """Put a held claim in doubt."""
    db.execute(
        "UPDATE claims SET owner = ? WHERE key = ? AND owner = ? AND result IS NULL",
        (_NOBODY, key, owner.id),
    )


def complete(
    db: apsw.Connection, now: float, key: str, result: bytes, *, owner: Owner, ttl: float | None = None
) -> bool:
    """Record a result; whether this owner still held the claim."""
    db.execute(
        "UPDATE claims SET result = ?, note = NULL, expires = coalesce(?, expires) "  # noqa: S608
        f"WHERE key = ? AND owner = ? AND result IS NULL AND {_KEPT}",
        (result, None if ttl is None else now + ttl, key, owner.id, now),
    )
    return db.changes() == 1


def release(db: apsw.Connection, key: str, owner: Owner) -> None:
    """Forget a claim that one holds and has not run."""
    db.execute("DELETE FROM claims WHERE key = ? AND owner = ? AND result IS NULL", (key, owner.id))
