"""SQL statements for values, counters, claims and streams, and the limits on their parameters."""

from __future__ import annotations

import math
from typing import Any

import apsw
from jackfield.store import Claim, ClaimState, DoubtfulClaim, StreamEntry

from jackfield_store_sqlite.process import ClaimOwner

MAX_KEY_BYTES = 1024
MAX_VALUE_BYTES = 16 * 1024 * 1024
_INT64 = range(-(2**63), 2**63)


def check(key: str, value: bytes = b"", ttl: float | None = None) -> bytes:
    """Check the key or stream, the value and the time to live of an operation; return the value as bytes.

    A mutable buffer is copied, because it may change before it is written. None means no expiry.
    """
    if not isinstance(key, str):
        raise TypeError(f"a key must be a str, not {type(key).__name__}")
    if len(key) * 4 > MAX_KEY_BYTES or not key.isascii():
        _measure(key)
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"a value must be bytes, not {type(value).__name__}")
    if len(value) > MAX_VALUE_BYTES:
        raise ValueError(f"a value of {len(value)} bytes is too large; the limit is {MAX_VALUE_BYTES}")
    if ttl is not None and (math.isnan(ttl) or ttl < 0):
        raise ValueError(f"a time to live must be a number of seconds, at least 0, not {ttl!r}")
    return bytes(value)


def _measure(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"the key {text!r:.80} holds half of a surrogate pair") from None
    if size > MAX_KEY_BYTES:
        raise ValueError(f"the key {text!r:.80} has {size} bytes; the limit is {MAX_KEY_BYTES}")


def check_amount(number: int) -> int:
    """Check a counter increment and return it."""
    if number not in _INT64:
        raise ValueError(f"{number} does not fit into 64 bits")
    return number


def _expiry(now: float, ttl: float | None) -> float | None:
    """Return when a row expires; None for a row that does not."""
    return None if ttl is None or ttl == math.inf else now + ttl


_LAST = "\U0010ffff"
INLINE_BYTES = 256 * 1024
"""Larger values are read on a thread, because they would block the loop for longer than the switch takes."""


class TooLargeForLoopError(Exception):
    """The value is too large to be read on the event loop."""


def put_value(db: apsw.Connection, now: float, key: str, value: bytes, ttl: float | None) -> None:
    """Set a value."""
    row = (key, value, _expiry(now, ttl))
    db.execute("INSERT OR REPLACE INTO kept (key, value, expires) VALUES (?, ?, ?)", row)


def get_value(db: apsw.Connection, now: float, key: str, *, max_bytes: int) -> bytes | None:
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


def value_keys(db: apsw.Connection, now: float, prefix: str) -> list[str]:
    """Return the current keys with a prefix, sorted."""
    end = prefix_end(prefix)
    rows = db.execute(
        "SELECT key FROM kept WHERE key >= ? AND key < ? AND (expires IS NULL OR expires > ?) ORDER BY key",
        (prefix, end, now),
    )
    return [key for (key,) in rows]


def add_to_counter(db: apsw.Connection, now: float, key: str, amount: int, window: float) -> int:
    """Add to a counter and return its value."""
    row = db.execute("SELECT count, expires FROM counters WHERE key = ?", (key,)).get
    count, expires = row if row is not None and row[1] > now else (0, now + window)
    count += amount
    db.execute(
        "INSERT OR REPLACE INTO counters (key, count, expires) VALUES (?, ?, ?)", (key, count, expires)
    )
    return int(count)


def prefix_end(prefix: str) -> str:
    """Return the smallest text above all texts with a prefix: the end of an index range."""
    stem = prefix.rstrip(_LAST)
    if not stem:
        return _LAST * MAX_KEY_BYTES  # Longer than any key.
    # UTF-8 sorts by code point; the code points skipped here are surrogates.
    following = 0xE000 if stem[-1] == "\ud7ff" else ord(stem[-1]) + 1
    return stem[:-1] + chr(following)


RUN, RUNNING = Claim(ClaimState.RUN), Claim(ClaimState.RUNNING)
IN_DOUBT, CONFLICT, FREE = Claim(ClaimState.IN_DOUBT), Claim(ClaimState.CONFLICT), Claim(ClaimState.FREE)
_NO_OWNER = ""


_CURRENT = "(claims.expires IS NULL OR claims.expires > ? OR claims.note IS NOT NULL)"
"""Current claims: not expired, or with a note, which a person has to resolve."""


def find_claim(
    db: apsw.Connection, now: float, key: str, fingerprint: bytes, owner: ClaimOwner
) -> Claim | None:
    """Return the state of an existing claim, or None."""
    row = db.execute(
        f"SELECT fingerprint = ?, owner, result FROM claims WHERE key = ? AND {_CURRENT}",  # noqa: S608
        (fingerprint, key, now),
    ).get
    if row is None:
        return None
    same, holder, result = row
    return _to_claim(db, now, holder, result, owner) if same else CONFLICT


def make_claim(
    db: apsw.Connection,
    now: float,
    key: str,
    fingerprint: bytes,
    *,
    ttl: float | None,
    owner: ClaimOwner,
    note: bytes = b"",
    result: bytes | None = None,
) -> Claim:
    """Insert a claim, or return the state of the existing one.

    One statement decides, so this is also safe outside a transaction.
    """
    row = (key, fingerprint, owner.id, result, _expiry(now, ttl), note if note and result is None else None)
    while True:
        db.execute(
            "INSERT INTO claims (key, fingerprint, owner, result, expires, note) "  # noqa: S608
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, "
            "owner = excluded.owner, result = excluded.result, expires = excluded.expires, "
            f"note = excluded.note WHERE NOT {_CURRENT}",
            (*row, now),
        )
        if db.changes() == 1:
            return RUN
        found = find_claim(db, now, key, fingerprint, owner)
        # Without a transaction, another process may have released the claim in between.
        if found is not None:
            return found


def claim_state(db: apsw.Connection, now: float, key: str, owner: ClaimOwner) -> Claim:
    """Return the state of a claim."""
    row = db.execute(
        f"SELECT owner, result FROM claims WHERE key = ? AND {_CURRENT}",  # noqa: S608
        (key, now),
    ).get
    return FREE if row is None else _to_claim(db, now, row[0], row[1], owner)


def holds_claim(db: apsw.Connection, now: float, key: str, owner: ClaimOwner) -> bool:
    """True if this owner holds the claim and it has no result yet."""
    row = db.execute(
        f"SELECT owner FROM claims WHERE key = ? AND result IS NULL AND {_CURRENT}",  # noqa: S608
        (key, now),
    ).get
    return bool(row == owner.id)


def claims_in_doubt(db: apsw.Connection, now: float, prefix: str, owner: ClaimOwner) -> list[DoubtfulClaim]:
    """Return the claims with a note whose owners are expired."""
    rows: list[Any] = db.execute(
        "SELECT key, owner, note FROM claims WHERE note IS NOT NULL AND result IS NULL "
        "AND key >= ? AND key < ? ORDER BY key",
        (prefix, prefix_end(prefix)),
    ).fetchall()
    return [DoubtfulClaim(key, note) for key, holder, note in rows if owner.is_expired(db, now, holder)]


def _to_claim(db: apsw.Connection, now: float, holder: str, result: bytes | None, owner: ClaimOwner) -> Claim:
    if result is not None:
        return Claim(ClaimState.DONE, result)
    return IN_DOUBT if owner.is_expired(db, now, holder) else RUNNING


def take_over_claim(db: apsw.Connection, now: float, key: str, owner: ClaimOwner) -> bool:
    """Take over a claim in doubt; the surrounding transaction lets one caller succeed."""
    if claim_state(db, now, key, owner) is not IN_DOUBT:
        return False
    db.execute("UPDATE claims SET owner = ? WHERE key = ?", (owner.id, key))
    return True


def abandon_claim(db: apsw.Connection, key: str, owner: ClaimOwner) -> None:
    """Give up a held claim, which is then in doubt."""
    db.execute(
        "UPDATE claims SET owner = ? WHERE key = ? AND owner = ? AND result IS NULL",
        (_NO_OWNER, key, owner.id),
    )


def complete_claim(
    db: apsw.Connection, now: float, key: str, result: bytes, *, owner: ClaimOwner, ttl: float | None = None
) -> bool:
    """Record a result; return whether this owner still held the claim."""
    db.execute(
        "UPDATE claims SET result = ?, note = NULL, expires = coalesce(?, expires) "  # noqa: S608
        f"WHERE key = ? AND owner = ? AND result IS NULL AND {_CURRENT}",
        (result, None if ttl is None else now + ttl, key, owner.id, now),
    )
    return db.changes() == 1


def release_claim(db: apsw.Connection, key: str, owner: ClaimOwner) -> None:
    """Delete a held claim whose call did not run."""
    db.execute("DELETE FROM claims WHERE key = ? AND owner = ? AND result IS NULL", (key, owner.id))


def append_entry(db: apsw.Connection, now: float, stream: str, value: bytes, ttl: float | None) -> int:
    """Append an entry and return its id; a stream keeps its last id forever, so no id is reused."""
    number, last = db.execute(
        "INSERT INTO streams (name, last) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET last = last + 1 "
        "RETURNING number, last",
        (stream,),
    ).get
    db.execute(
        "INSERT INTO entries (stream, id, value, expires) VALUES (?, ?, ?, ?)",
        (number, last, value, _expiry(now, ttl)),
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


def read_entries(db: apsw.Connection, now: float, stream: str, after: int, limit: int) -> list[StreamEntry]:
    """Return the current entries after an id, oldest first."""
    rows = db.execute(
        "SELECT id, value FROM entries WHERE stream = (SELECT number FROM streams WHERE name = ?) "
        "AND id > ? AND (expires IS NULL OR expires > ?) ORDER BY id LIMIT ?",
        (stream, after, now, limit),
    )
    return [StreamEntry(*row) for row in rows]


CHUNK = 1000
_EXPIRED = {
    "kept": "expires <= ?",
    "counters": "expires <= ?",
    # A claim with a note stays until a person resolves it.
    "claims": "expires <= ? AND note IS NULL",
    "entries": "expires <= ?",
}


def prune(db: apsw.Connection, now: float) -> int:
    """Delete up to `CHUNK` expired rows, so that writers wait briefly; return how many."""
    gone = 0
    for table, expired in _EXPIRED.items():
        db.execute(
            f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {expired} LIMIT ?)",  # noqa: S608
            (now, CHUNK - gone),
        )
        gone += db.changes()
    return gone
