"""The candidates of a search inside PostgreSQL: passages with the best BM25, and the nearest vectors."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jackfield_capability_types.knowledge import Filters

from jackfield_kb.postgres.schema import Connection
from jackfield_kb.postgres.term_impacts import query_vector, rarity, term_of
from jackfield_kb.records.rows import in_microseconds

MOST_MATCHES = 10_000
"""About how many passages a query's words may match; more frequent words only affect the order."""

_VISIT = 3
"""The time to visit a vector in the index, relative to comparing one that passes the filter."""

_TOTALS = """
    SELECT
        (SELECT passages FROM totals) AS passages,
        (SELECT complete FROM totals) OR (SELECT number FROM head) = 0 AS complete,
        (SELECT jsonb_object_agg(term, passages) FROM terms WHERE term = ANY ($1)) AS terms,
        (SELECT dimensions FROM models WHERE model = $2) AS dimensions,
        EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($3)) AS indexed
"""


def index_of(model: str) -> str:
    """Return the name of the index of a model's vectors."""
    return f"vectors_of_{zlib.crc32(model.encode()):08x}"


class QueryTotals(NamedTuple):
    """Statistics of the whole library for a query."""

    passages: int
    complete: bool
    weights: dict[str, float]
    """The weight of each word."""

    matching: list[int]
    """The terms of which a passage has to contain at least one: the words that are rare enough."""

    dimensions: int | None
    """The number of dimensions of the model's vectors; None if it has no vectors."""

    indexed: bool
    """True if the vectors have an index, which is approximate."""


class Candidate(NamedTuple):
    """A passage with its BM25, and its vector if it has one."""

    number: int
    ordinal: int
    matches: float
    vector: bytes | None


async def totals(connection: Connection, stems: Sequence[str], model: str) -> QueryTotals:
    """Read the rarity of the query's words, and the state of the model's vectors."""
    terms = {stem: term_of(stem) for stem in stems}
    row: Any = await connection.fetchrow(_TOTALS, list(terms.values()), model, index_of(model))
    counts = {int(term): count for term, count in json.loads(row["terms"] or "{}").items()}
    weights = {stem: rarity(counts.get(term, 0), row["passages"]) for stem, term in terms.items()}
    matching = _rare(counts)
    return QueryTotals(row["passages"], row["complete"], weights, matching, row["dimensions"], row["indexed"])


def _rare(counts: Mapping[int, int]) -> list[int]:
    """Return the rarest words, at least one, that together match few enough passages to score them all."""
    found: list[int] = []
    matched = 0
    for term, count in sorted(counts.items(), key=lambda each: each[1]):
        matched += count
        if found and matched > MOST_MATCHES:
            break
        if count > 0:
            found.append(term)
    return found


class CandidateQuery:
    """Builds the statement for a query; all values are parameters."""

    def __init__(self, scopes: frozenset[str] | None, filters: Filters | None, depth: int) -> None:
        self._values: list[Any] = []
        self._depth = depth
        self._conditions = self._facets(scopes, filters or Filters())

    def _facets(self, scopes: frozenset[str] | None, filters: Filters) -> str:
        found = ["true"]
        if scopes is not None:
            found.append(f"facets && {self._value([f'scope:{scope}' for scope in sorted(scopes)])}::text[]")
        needed = [f"tag:{tag}" for tag in filters.tags]
        if filters.type is not None:
            needed.append(f"type:{filters.type}")
        if needed:
            found.append(
                f"facets @> {self._value([each.replace(chr(0), chr(0xFFFD)) for each in needed])}::text[]"
            )
        for moment, order in ((filters.updated_from, ">="), (filters.updated_until, "<=")):
            if moment is not None:
                found.append(f"updated {order} {self._value(in_microseconds(moment))}::bigint")
        return " AND ".join(found)

    def _value(self, value: Any) -> str:
        self._values.append(value)
        return f"${len(self._values)}"

    async def run(
        self,
        connection: Connection,
        stems: Sequence[str],
        known: QueryTotals,
        near: tuple[str, bytes] | None,
    ) -> list[Candidate]:
        """Return the candidates; `near` is the model and the query's vector."""
        if near is None or not known.indexed:
            return await self._fetch(connection, stems, known, near, exact=False)
        exact = await self._is_narrow(connection, near[0], known)
        found = await self._fetch(connection, stems, known, near, exact=exact)
        if not exact and sum(each.vector is not None for each in found) < self._depth:
            # The index gives up after some tuples; an exact search is fast if few passages match.
            found = await self._fetch(connection, stems, known, near, exact=True)
        return found

    async def _is_narrow(self, connection: Connection, model: str, known: QueryTotals) -> bool:
        """Return whether comparing all vectors that pass the filter is faster than the index.

        The narrower the filter is, the more vectors the index visits until enough of them pass. The server's
        statistics estimate how many pass.
        """
        if not self._values:
            return False
        place = self._value(model)
        statement = f"SELECT FROM vectors WHERE model = {place}::text AND {self._conditions}"
        plan = json.loads(await connection.fetchval(f"EXPLAIN (FORMAT JSON) {statement}", *self._values))
        self._values.pop()
        passing = float(plan[0]["Plan"]["Plan Rows"])
        return passing**2 <= _VISIT * self._depth * known.passages

    async def _fetch(
        self,
        connection: Connection,
        stems: Sequence[str],
        known: QueryTotals,
        near: tuple[str, bytes] | None,
        *,
        exact: bool,
    ) -> list[Candidate]:
        kept = len(self._values)
        query = f"{self._value(query_vector(stems, known.weights))}::sparsevec"
        parts = [self._by_words(query, known.matching)] if known.matching else []
        vector, join = "NULL::halfvec", ""
        if near is not None:
            model, asked = (self._value(value) for value in near)
            parts.append(
                self._by_meaning(f"{model}::text", f"{asked}::halfvec", known.dimensions, exact=exact)
            )
            vector = "v.vector"
            join = (
                f"LEFT JOIN vectors v ON v.model = {model}::text "
                "AND v.number = c.number AND v.ordinal = c.ordinal"
            )
        if not parts:
            del self._values[kept:]
            return []
        statement = f"""
            WITH c AS ({" UNION ".join(f"({part})" for part in parts)})
            SELECT c.number, c.ordinal, coalesce(-(p.impacts <#> {query}), 0), {vector}
            FROM c LEFT JOIN passages p ON p.number = c.number AND p.ordinal = c.ordinal {join}
        """  # noqa: S608 - built from constants and parameter placeholders
        rows = await connection.fetch(statement, *self._values)
        del self._values[kept:]
        return [Candidate(*row) for row in rows]

    def _by_words(self, query: str, matching: Sequence[int]) -> str:
        return (
            f"SELECT number, ordinal FROM passages "  # noqa: S608
            f"WHERE terms && {self._value(list(matching))}::integer[] AND {self._conditions} "
            f"ORDER BY impacts <#> {query} LIMIT {self._depth}"
        )

    def _by_meaning(self, model: str, asked: str, dimensions: int | None, *, exact: bool) -> str:
        # The index is used only if the order is the operator alone.
        distance = f"vector::halfvec({dimensions}) <=> {asked}"
        order = f"({distance}) + 0" if exact else distance
        return (
            f"SELECT number, ordinal FROM vectors "  # noqa: S608
            f"WHERE model = {model} AND {self._conditions} ORDER BY {order} LIMIT {self._depth}"
        )
