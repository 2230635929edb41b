"""SQL statements for values, counters, claims and streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
from jackfield.store import Claim, ClaimState, DoubtfulClaim, StreamEntry
from jackfield.store_limits import check, check_amount, prefix_end

from jackfield_store_sqlite.process_identity import ClaimOwner

INLINE_BYTES = 256 * 1024
"""Larger values are read on a thread, because they would block the loop for longer than the switch takes."""
INLINE_ROWS = 32
"""More rows are read on a thread, for the same reason."""
INLINE_ENTRY_BYTES = 8 * 1024
"""Streams with longer entries are read on a thread, for the same reason."""
MAX_ROWS = 2**62
"""More rows than any table has."""


class TooLargeForLoopError(Exception):
    """The data is too large to be read on the event loop."""


# `INSERT OR REPLACE` would insert a new row each time, and therefore write the key index as well.
_PUT = (
    "INSERT INTO kept (key, value, expires) VALUES (?, ?, ?) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires"
)


def put_value(db: apsw.Connection, now: float, key: str, value: bytes, ttl: float | None) -> None:
    """Set a value."""
    check(key, value, ttl)
    db.execute(_PUT, (key, value, None if ttl is None else now + ttl))


def get_value(db: apsw.Connection, now: float, key: str, max_bytes: int) -> bytes | None:
    """Return a current value; raise `TooLargeForLoopError` if it exceeds `max_bytes`."""
    row = db.execute(
        "SELECT CASE WHEN length(value) <= ? THEN value END, 1 FROM kept "
        "WHERE key = ? AND (expires IS NULL OR expires > ?)",
        (max_bytes, key, now),
    ).get
    if row is None:
        return None
    if row[0] is None:
        raise TooLargeForLoopError
    value: bytes = row[0]
    return value


def take_value(db: apsw.Connection, now: float, key: str) -> bytes | None:
    """Delete a value and return it, unless it has expired."""
    row = db.execute("DELETE FROM kept WHERE key = ? RETURNING value, expires", (key,)).get
    if row is None or (row[1] is not None and row[1] <= now):
        return None
    value: bytes = row[0]
    return value


def delete_value(db: apsw.Connection, now: float, key: str) -> bool:
    """Delete a value; return whether a current one existed."""
    row = db.execute("DELETE FROM kept WHERE key = ? RETURNING 1, expires", (key,)).get
    return row is not None and (row[1] is None or row[1] > now)


_KEYS = "SELECT key, expires FROM kept WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"


def value_keys(db: apsw.Connection, now: float, prefix: str, max_rows: int) -> list[str]:
    """Return the current keys with a prefix, sorted; raise `TooLargeForLoopError` if there are too many.

    Expired keys count as well, because they have to be read.
    """
    rows: list[Any] = db.execute(_KEYS, (prefix, prefix_end(prefix), max_rows + 1)).fetchall()
    if len(rows) > max_rows:
        raise TooLargeForLoopError
    return [key for key, expires in rows if expires is None or expires > now]


_COUNT = (
    "INSERT INTO counters (key, count, expires) VALUES (?, ?, ?) "
    "ON CONFLICT (key) DO UPDATE SET count = excluded.count, expires = excluded.expires"
)


def add_to_counter(db: apsw.Connection, now: float, key: str, amount: int, window: float) -> int:
    """Add to a counter and return its value."""
    check(key, ttl=window)
    amount = check_amount(amount)
    row = db.execute("SELECT count, expires FROM counters WHERE key = ?", (key,)).get
    count, expires = row if row is not None and row[1] > now else (0, now + window)
    count += amount
    db.execute(_COUNT, (key, count, expires))
    return int(count)


RUN, RUNNING = Claim(ClaimState.RUN), Claim(ClaimState.RUNNING)
IN_DOUBT, CONFLICT, FREE = Claim(ClaimState.IN_DOUBT), Claim(ClaimState.CONFLICT), Claim(ClaimState.FREE)
_NO_OWNER = ""


_CURRENT = "(expires IS NULL OR expires > ? OR note IS NOT NULL)"
"""Current claims: not expired, or with a note, which a person has to resolve."""

# Constant and short, because SQLite's statement cache compares the whole text for every operation.
_FIND = f"SELECT fingerprint = ?, owner, result FROM claims WHERE key = ? AND {_CURRENT}"  # noqa: S608
_STATE = f"SELECT owner, result FROM claims WHERE key = ? AND {_CURRENT}"  # noqa: S608
_HOLDER = f"SELECT owner FROM claims WHERE key = ? AND result IS NULL AND {_CURRENT}"  # noqa: S608
_MAKE = (
    "INSERT INTO claims (key, fingerprint, owner, result, expires, note) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)
_MAKE_AGAIN = (
    "UPDATE claims SET fingerprint = ?2, owner = ?3, result = ?4, expires = ?5, note = ?6 WHERE key = ?1 "  # noqa: S608
    f"AND NOT {_CURRENT.replace('?', '?7')}"
)
_HELD = f"WHERE key = ? AND owner = ? AND result IS NULL AND {_CURRENT}"
_COMPLETE = f"UPDATE claims SET result = ?, note = NULL {_HELD}"  # noqa: S608
_COMPLETE_UNTIL = f"UPDATE claims SET result = ?, note = NULL, expires = ? {_HELD}"  # noqa: S608


def find_claim(
    db: apsw.Connection, now: float, key: str, fingerprint: bytes, owner: ClaimOwner
) -> Claim | None:
    """Return the state of an existing claim, or None."""
    row = db.execute(_FIND, (fingerprint, key, now)).get
    if row is None:
        return None
    same, _, result = row
    if not same:
        return CONFLICT
    if result is not None:
        return Claim(ClaimState.DONE, result)
    state = claim_state(db, now, key, owner)
    return None if state is FREE else state


def make_claim(  # noqa: PLR0917 - the writer passes arguments by position
    db: apsw.Connection,
    now: float,
    key: str,
    fingerprint: bytes,
    owner: ClaimOwner,
    ttl: float,
    note: bytes = b"",
    result: bytes | None = None,
) -> Claim:
    """Insert a claim, replace one that has expired, or return the state of a current one.

    Each statement makes its own decision, so this is also safe outside a transaction.
    """
    kept_note = note if note and result is None else None
    row = (key, fingerprint, owner.id, result, now + ttl, kept_note)
    while True:
        db.execute(_MAKE, row)
        if db.changes() == 1:
            return RUN
        db.execute(_MAKE_AGAIN, (*row, now))
        if db.changes() == 1:
            return RUN
        found = find_claim(db, now, key, fingerprint, owner)
        # Without a transaction, another process may have released the claim in between.
        if found is not None:
            return found


def claim_state(db: apsw.Connection, now: float, key: str, owner: ClaimOwner) -> Claim:
    """Return the state of a claim."""
    while True:
        row = db.execute(_STATE, (key, now)).get
        if row is None:
            return FREE
        holder, result = row
        if result is not None:
            return Claim(ClaimState.DONE, result)
        if not owner.is_expired(db, now, holder):
            return RUNNING
        # Without a transaction, the owner may have recorded the result and ended since the first query.
        if db.execute(_STATE, (key, now)).get == row:
            return IN_DOUBT


def holds_claim(db: apsw.Connection, now: float, key: str, owner: ClaimOwner) -> bool:
    """True if this owner holds the claim and it has no result yet."""
    return bool(db.execute(_HOLDER, (key, now)).get == owner.id)


def claims_in_doubt(db: apsw.Connection, now: float, prefix: str, owner: ClaimOwner) -> list[DoubtfulClaim]:
    """Return the claims with a note whose owners are expired."""
    rows: list[Any] = db.execute(
        "SELECT key, note FROM claims WHERE note IS NOT NULL AND result IS NULL "
        "AND key >= ? AND key < ? ORDER BY key",
        (prefix, prefix_end(prefix)),
    ).fetchall()
    return [DoubtfulClaim(key, note) for key, note in rows if claim_state(db, now, key, owner) is IN_DOUBT]


def take_over_claim(db: apsw.Connection, now: float, key: str, owner: ClaimOwner) -> bool:
    """Take over a claim in doubt; the surrounding transaction lets one caller succeed."""
    if claim_state(db, now, key, owner) is not IN_DOUBT:
        return False
    db.execute("UPDATE claims SET owner = ? WHERE key = ?", (owner.id, key))
    return True


def abandon_claim(db: apsw.Connection, _now: float, key: str, owner: ClaimOwner) -> None:
    """Give up a held claim, which is then in doubt."""
    db.execute(
        "UPDATE claims SET owner = ? WHERE key = ? AND owner = ? AND result IS NULL",
        (_NO_OWNER, key, owner.id),
    )


def complete_claim(  # noqa: PLR0917 - the writer passes arguments by position
    db: apsw.Connection, now: float, key: str, result: bytes, owner: ClaimOwner, ttl: float | None = None
) -> bool:
    """Record a result; return whether this owner still held the claim."""
    if ttl is None:
        db.execute(_COMPLETE, (result, key, owner.id, now))
    else:
        db.execute(_COMPLETE_UNTIL, (result, now + ttl, key, owner.id, now))
    return db.changes() == 1


def release_claim(db: apsw.Connection, _now: float, key: str, owner: ClaimOwner) -> None:
    """Delete a held claim whose call did not run."""
    db.execute("DELETE FROM claims WHERE key = ? AND owner = ? AND result IS NULL", (key, owner.id))


def append_entries(
    db: apsw.Connection, now: float, stream: str, values: Sequence[bytes], ttl: float | None
) -> int:
    """Append entries and return the last id; a stream keeps its last id forever, so no id is reused."""
    for value in values:
        check(stream, value, ttl)
    number, last = db.execute(
        "INSERT INTO streams (name, last) VALUES (?1, ?2) "
        "ON CONFLICT (name) DO UPDATE SET last = last + ?2 RETURNING number, last",
        (stream, len(values)),
    ).get
    expires = None if ttl is None else now + ttl
    for id_, value in enumerate(values, last - len(values) + 1):
        db.execute(
            "INSERT INTO entries (stream, id, value, expires) VALUES (?, ?, ?, ?)",
            (number, id_, value, expires),
        )
    return int(last)


def last_entry_id(db: apsw.Connection, stream: str) -> int:
    """Return the highest id ever used in a stream, or 0."""
    return db.execute("SELECT last FROM streams WHERE name = ?", (stream,)).get or 0


def stream_names(db: apsw.Connection, now: float, prefix: str) -> list[str]:
    """Return the streams with a prefix and a current entry, sorted."""
    rows = db.execute(
        "SELECT name FROM streams WHERE name >= ? AND name < ? AND EXISTS (SELECT 1 FROM entries "
        "WHERE stream = number AND (expires IS NULL OR expires > ?)) ORDER BY name",
        (prefix, prefix_end(prefix), now),
    )
    return [name for (name,) in rows]


def clear_stream(db: apsw.Connection, now: float, stream: str) -> int:
    """Delete all entries of a stream; return how many were current."""
    gone = db.execute(
        "DELETE FROM entries WHERE stream = (SELECT number FROM streams WHERE name = ?) "
        "RETURNING expires IS NULL OR expires > ?",
        (stream, now),
    )
    return sum(readable for (readable,) in gone)


_ENTRIES = (
    "SELECT id, CASE WHEN length(value) <= ? THEN value END, expires FROM entries "
    "WHERE stream = (SELECT number FROM streams WHERE name = ?) AND id > ? ORDER BY id LIMIT ?"
)


def read_few_entries(
    db: apsw.Connection, now: float, stream: str, after: int, limit: int
) -> list[StreamEntry]:
    """Return what `read_entries` does; raise `TooLargeForLoopError` if it is too much for the loop."""
    wanted = min(limit, INLINE_ROWS) + 1
    rows: list[Any] = db.execute(_ENTRIES, (INLINE_ENTRY_BYTES, stream, after, wanted)).fetchall()
    current = [StreamEntry(*entry) for *entry, expires in rows if expires is None or expires > now]
    if any(value is None for _, value in current) or (len(current) < limit and len(rows) == wanted):
        raise TooLargeForLoopError
    return current[:limit]


def read_entries(db: apsw.Connection, now: float, stream: str, after: int, limit: int) -> list[StreamEntry]:
    """Return the current entries after an id, oldest first."""
    rows = db.execute(
        "SELECT id, value FROM entries WHERE stream = (SELECT number FROM streams WHERE name = ?) "
        "AND id > ? AND (expires IS NULL OR expires > ?) ORDER BY id LIMIT ?",
        (stream, after, now, limit),
    )
    return [StreamEntry(*row) for row in rows]
