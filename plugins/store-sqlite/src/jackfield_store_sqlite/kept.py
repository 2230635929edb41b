"""Values and counters, in SQL."""

from __future__ import annotations

import apsw

from jackfield_store_sqlite.limits import MAX_KEY_BYTES

_LAST = "\U0010ffff"
INLINE_BYTES = 256 * 1024
"""Up to this size a value is read on the loop; a bigger one would hold it longer than a hop to a thread."""


class TooBigHereError(Exception):
    """A value that is better read on another thread."""


def put(db: apsw.Connection, key: str, value: bytes, expires: float | None) -> None:
    """Set a value."""
    db.execute("INSERT OR REPLACE INTO kept (key, value, expires) VALUES (?, ?, ?)", (key, value, expires))


def get(db: apsw.Connection, now: float, key: str, *, up_to: int) -> bytes | None:
    """A value that has not expired; `TooBigHereError` when it is bigger than `up_to`."""
    row = db.execute(
        "SELECT CASE WHEN length(value) <= ? THEN value END, 1 FROM kept "
        "WHERE key = ? AND (expires IS NULL OR expires > ?)",
        (up_to, key, now),
    ).get
    if row is None:
        return None
    if row[0] is None:
        raise TooBigHereError
    value: bytes = row[0]
    return value


def take(db: apsw.Connection, now: float, key: str) -> bytes | None:
    """Remove a value and return it, unless it has expired."""
    row = db.execute("DELETE FROM kept WHERE key = ? RETURNING value, expires", (key,)).get
    if row is None or (row[1] is not None and row[1] <= now):
        return None
    value: bytes = row[0]
    return value


def delete(db: apsw.Connection, now: float, key: str) -> bool:
    """Remove a value; whether there was one that had not expired."""
    row = db.execute("DELETE FROM kept WHERE key = ? RETURNING 1, expires", (key,)).get
    return row is not None and (row[1] is None or row[1] > now)


def keys(db: apsw.Connection, now: float, prefix: str) -> list[str]:
    """The keys that begin so and have not expired, sorted."""
    end = after_all_that_begin_with(prefix)
    rows = db.execute(
        "SELECT key FROM kept WHERE key >= ? AND key < ? AND (expires IS NULL OR expires > ?) ORDER BY key",
        (prefix, end, now),
    )
    return [key for (key,) in rows]


def add(db: apsw.Connection, now: float, key: str, amount: int, window: float) -> int:
    """Add to a counter."""
    row = db.execute("SELECT count, expires FROM counters WHERE key = ?", (key,)).get
    count, expires = row if row is not None and row[1] > now else (0, now + window)
    count += amount
    db.execute(
        "INSERT OR REPLACE INTO counters (key, count, expires) VALUES (?, ?, ?)", (key, count, expires)
    )
    return int(count)


def after_all_that_begin_with(prefix: str) -> str:
    """The least text greater than all that begin with a prefix, so that the index finds where to stop."""
    stem = prefix.rstrip(_LAST)
    if not stem:
        return _LAST * MAX_KEY_BYTES  # No key is long enough to be greater.
    # UTF-8 sorts as the code points do; those between the two here are no characters.
    following = 0xE000 if stem[-1] == "\ud7ff" else ord(stem[-1]) + 1
    return stem[:-1] + chr(following)
