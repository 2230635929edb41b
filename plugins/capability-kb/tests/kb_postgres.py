"""Databases for tests, and libraries whose records are in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from jackfield_capability_types.knowledge import SearchResults
from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.library import Library
from jackfield_kb.postgres.database import SessionPool
from jackfield_kb.postgres.leases import SECONDS
from jackfield_kb.postgres.records import PostgresRecords
from jackfield_kb.postgres.replica_search import ReplicaSearch
from jackfield_kb.postgres.search import PostgresSearch
from jackfield_testkit.postgres import PostgresServer
from kb_fixtures import EVERYTHING

_EMPTY = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
    SET search_path TO jackfield_kb;
    TRUNCATE head, totals, sources, records, removed, leases, models, vectors, passages, terms;
    INSERT INTO head DEFAULT VALUES;
    INSERT INTO totals DEFAULT VALUES;
"""
PATIENCE = 30.0
"""How many seconds a test waits for what happens within one, also on a busy machine."""


class Databases:
    """Databases of one server, which later tests use again, because emptying one is faster."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self._numbers = count(1)
        self._free: list[str] = []

    @contextmanager
    def lent(self) -> Iterator[Callable[[], str]]:
        """Yield a function that returns the address of an empty database; later tests get it afterwards."""
        used: list[str] = []

        def create() -> str:
            used.append(self._emptied() if self._free else self._created())
            return self.server.uri(used[-1])

        yield create
        self._free += used

    def _created(self) -> str:
        name = f"knowledge_{next(self._numbers)}"
        records = PostgresRecords(SessionPool(self.server.create_database(name)))
        records.position()
        records.close()
        return name

    def _emptied(self) -> str:
        name = self._free.pop()
        self.server.execute(_EMPTY, database=name)
        return name


def shared(
    url: str,
    folder: Path | None = None,
    model: EmbeddingModel | None = None,
    notice: Callable[[str], None] = lambda line: None,
    *,
    lease: float = SECONDS,
) -> Library:
    """Open a library in PostgreSQL, with indexes in a folder; without a folder PostgreSQL searches."""
    records = PostgresRecords(SessionPool(url), lease=lease)
    engine = (
        PostgresSearch(records, model, notice)
        if folder is None
        else ReplicaSearch(folder, records, model, notice)
    )
    place = folder or Path("unused")
    return Library(place, embedder=model, notice=notice, records=records, engine=engine)


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def find(library: Library, query: str, limit: int = 5) -> SearchResults:
    return library.search(query, access=EVERYTHING, limit=limit)
