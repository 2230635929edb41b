"""The standard tests of a store, on SQLite."""

from __future__ import annotations

from collections.abc import Callable

from jackfield_store_sqlite import SqliteStore
from jackfield_store_sqlite.machine import Machine
from jackfield_testkit.store_contract import StoreContractTests


class TestSqliteStore(StoreContractTests):
    opener = "jackfield_store_sqlite:SqliteStore"

    def with_clock(self, place: str, clock: Callable[[], float]) -> SqliteStore:
        return SqliteStore(place, machine=Machine("a boot of the test", clock, clock))
