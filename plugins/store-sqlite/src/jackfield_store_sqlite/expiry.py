"""Finds and deletes expired rows, without an index on their expiry.

Such an index would cost every write more than the search costs `prune`. Rows are searched in ranges of row
ids. For a range that gets no new rows, the search notes when its next row expires, and skips the range until
then.
"""

from __future__ import annotations

from typing import NamedTuple

import apsw

RANGE_ROWS = 1000
"""Row ids per range, which limits how many rows one transaction deletes while other writers wait."""

RECHECK_SECONDS = 6 * 3600.0
"""Seconds after which a skipped range is searched again: a row may have received an earlier expiry."""

_REMOVABLE = {
    "kept": "TRUE",
    "counters": "TRUE",
    # A claim with a note stays until a person resolves it.
    "claims": "note IS NULL",
    "entries": "TRUE",
}
TABLES = tuple(_REMOVABLE)
"""Tables whose rows expire. Their expiry column precedes the value, so a search need not read values."""

_FIRST = "SELECT rowid FROM {0} WHERE rowid >= ? LIMIT 1"
_LAST = "SELECT max(rowid) FROM {0}"
_SEARCH = (
    "SELECT count(*) FILTER (WHERE expires <= ?1 AND {1}), min(expires) FILTER (WHERE expires > ?1) "
    "FROM {0} WHERE rowid BETWEEN ?2 AND ?3"
)
_DELETE = "DELETE FROM {0} WHERE rowid BETWEEN ? AND ? AND expires <= ? AND {1}"


class Found(NamedTuple):
    """A range that was searched."""

    start: int
    """Its first row id."""
    expired: int
    """How many of its rows have expired."""


class ExpirySearch:
    """Searches the tables of one store, and knows which ranges have no expired rows yet."""

    def __init__(self) -> None:
        self._due: dict[tuple[str, int], float] = {}
        """By table and first row id of a range: when to search the range again."""

    def search(self, db: apsw.Connection, now: float, table: str, start: int) -> Found | None:
        """Search the next range of a table that is due, from the one at `start` on; None if there is none."""
        while True:
            while self._due.get((table, start), now) > now:
                start += RANGE_ROWS
            first = db.execute(_FIRST.format(table), (start,)).get
            if first is None:
                # The ranges that are due but were not found have been emptied by another process.
                self._due = {key: due for key, due in self._due.items() if due > now or key[0] != table}
                return None
            start = first // RANGE_ROWS * RANGE_ROWS
            if self._due.get((table, start), now) <= now:
                return self._search_range(db, now, table, start)

    def _search_range(self, db: apsw.Connection, now: float, table: str, start: int) -> Found:
        end = start + RANGE_ROWS - 1
        expired, earliest = db.execute(_SEARCH.format(table, _REMOVABLE[table]), (now, start, end)).get
        self._due.pop((table, start), None)
        # A new row gets the id after the last one, so no earlier range gets new rows. A range with expired
        # rows is searched again, because their deletion can fail.
        if not expired and db.execute(_LAST.format(table)).get > end:
            recheck = now + RECHECK_SECONDS
            self._due[table, start] = recheck if earliest is None else min(earliest, recheck)
        return Found(start, expired)


def delete_expired(db: apsw.Connection, now: float, table: str, start: int) -> int:
    """Delete a range's expired rows and return how many there were."""
    db.execute(_DELETE.format(table, _REMOVABLE[table]), (start, start + RANGE_ROWS - 1, now))
    return db.changes()
