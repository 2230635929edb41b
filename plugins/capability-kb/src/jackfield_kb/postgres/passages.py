"""The words of passages in PostgreSQL, for the search inside PostgreSQL; the tables follow the records."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jackfield_kb.postgres.schema import Connection
from jackfield_kb.postgres.term_impacts import Averages, Passage, impacts, passages_of
from jackfield_kb.records.interface import Numbered

if TYPE_CHECKING:
    from jackfield_kb.postgres.records import PostgresRecords

_BATCH = 2_000
_LOOK = 0.2
_REMOVE = """
    WITH gone AS (
        DELETE FROM passages WHERE number = ANY ($1) RETURNING terms, words, titles
    ), fewer AS (
        UPDATE terms SET passages = terms.passages - lost.passages
        FROM (SELECT term, count(*) AS passages FROM gone, unnest(gone.terms) AS term GROUP BY term) AS lost
        WHERE terms.term = lost.term
    )
    UPDATE totals AS t SET passages = t.passages - lost.passages, words = t.words - lost.words,
        titles = t.titles - lost.titles
    FROM (SELECT count(*) AS passages, coalesce(sum(words), 0) AS words, coalesce(sum(titles), 0) AS titles
          FROM gone) AS lost
"""
_ADD = """
    INSERT INTO passages (number, ordinal, facets, updated, words, titles, terms, impacts)
    SELECT number, $2, facets, updated, $3, $4, $5, $6 FROM records WHERE number = $1
"""
_COUNT = """
    INSERT INTO terms (term, passages) SELECT * FROM unnest($1::integer[], $2::integer[])
    ON CONFLICT (term) DO UPDATE SET passages = terms.passages + excluded.passages
"""


async def remove(connection: Connection, numbers: Sequence[int]) -> None:
    """Remove the passages of records, and subtract them from the totals."""
    await connection.execute(_REMOVE, numbers)


class PassageTable:
    """Adds the passages of new records."""

    def __init__(self, records: PostgresRecords) -> None:
        self._records = records

    def lacks(self, *, rebuild: bool = False) -> int:
        """Return the number of records without passages; all of them for a rebuild."""
        return self._records.count_after(0 if rebuild else self.reach())

    def reach(self) -> int:
        """Return the record number up to which records have passages."""
        return int(
            self._records.database.query(lambda connection: connection.fetchval("SELECT number FROM totals"))
        )

    def refresh(self, count: Callable[[int], None], *, rebuild: bool = False, wait: bool = True) -> bool:
        """Add the missing passages, or replace all passages; only one host does so at a time."""
        while rebuild or self.lacks():
            with self._records.leases.held(["passages"]) as other:
                if other is None:
                    self._fill(0 if rebuild else self.reach(), count)
                    return True
            if not wait:
                return False
            # Lets the caller stop.
            count(0)
            time.sleep(_LOOK)
        return True

    def _fill(self, number: int, count: Callable[[int], None]) -> None:
        from jackfield_kb.postgres.records import EVERYTHING

        while batch := self._records.after(number, _BATCH):
            found = [passage for item in batch for passage in passages_of(item)]

            async def work(
                connection: Connection,
                batch: Sequence[Numbered] = batch,
                found: Sequence[Passage] = found,
            ) -> None:
                await self._add(connection, batch, found)

            self._records.database.run(work, EVERYTHING)
            number = batch[-1].number
            count(len(batch))
        self._records.database.query(
            lambda connection: connection.execute("UPDATE totals SET complete = true")
        )

    async def _add(self, connection: Connection, batch: Sequence[Numbered], found: Sequence[Passage]) -> None:
        # Locks the head first, as a writer does, so that no record of the batch is removed meanwhile.
        await connection.fetch("SELECT FROM head FOR UPDATE")
        await self._records.leases.check(connection)
        numbers = [item.number for item in batch]
        await remove(connection, numbers)
        rows = await connection.fetch("SELECT number FROM records WHERE number = ANY ($1)", numbers)
        there = {number for (number,) in rows}
        found = [passage for passage in found if passage.number in there]
        averages = await self._totalled(connection, found, numbers[-1])
        await connection.executemany(_ADD, [_row(passage, averages) for passage in found])
        terms = Counter(term for passage in found for term in passage.words)
        await connection.execute(_COUNT, list(terms), list(terms.values()))

    async def _totalled(self, connection: Connection, found: Sequence[Passage], number: int) -> Averages:
        """Add the passages to the totals, and return the averages."""
        row: Any = await connection.fetchrow(
            "UPDATE totals SET passages = passages + $1, words = words + $2, titles = titles + $3, "
            "number = greatest(number, $4) RETURNING passages, words, titles",
            len(found),
            sum(passage.words.total() for passage in found),
            sum(passage.title.total() for passage in found),
            number,
        )
        total, words, titles = row
        return Averages(words / max(total, 1), titles / max(total, 1))


def _row(passage: Passage, averages: Averages) -> tuple[Any, ...]:
    return (
        passage.number,
        passage.ordinal,
        passage.words.total(),
        passage.title.total(),
        sorted(passage.words),
        impacts(passage, averages),
    )
