"""The contract tests of a store on PostgreSQL."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from clocked_store import ClockedStore
from jackfield_testkit.postgres import PostgresServer
from jackfield_testkit.store import StoreContractTests
from postgres_stores import open_unregistered


class PostgresContractTests(StoreContractTests, abstract=True):
    opener = "postgres_stores:open_store"

    uri: ClassVar[str] = ""
    numbers: ClassVar[itertools.count[int]] = itertools.count()

    def place(self, tmp_path: Path) -> str:
        return f"{self.uri}#contract{next(self.numbers)}"

    def with_clock(self, place: str, clock: Callable[[], float]) -> Any:
        # Random sequences of operations get places that are paths.
        schema = f"clocked{hashlib.sha256(place.encode()).hexdigest()[:16]}"
        return ClockedStore(
            self.uri.split(), schema, clock, partial(open_unregistered, f"{self.uri}#{schema}")
        )


class TestPostgresStore(PostgresContractTests):
    @pytest.fixture(autouse=True, scope="class")
    @staticmethod
    def server_uri(request: pytest.FixtureRequest, server: PostgresServer) -> None:
        request.cls.uri = server.uri()


class TestOldestSupportedServer(PostgresContractTests):
    """The same on the oldest supported version, with fewer repetitions of what depends on chance."""

    rounds = 5
    examples = 5

    @pytest.fixture(autouse=True, scope="class")
    @staticmethod
    def server_uri(request: pytest.FixtureRequest, oldest_server: PostgresServer) -> None:
        request.cls.uri = oldest_server.uri()


class TestShardedStore(PostgresContractTests):
    """The same on a store that is spread over two databases, with fewer repetitions."""

    opener = "postgres_stores:open_sharded_store"
    rounds = 5
    examples = 5

    @pytest.fixture(autouse=True, scope="class")
    @staticmethod
    def server_uri(request: pytest.FixtureRequest, server: PostgresServer) -> None:
        request.cls.uri = f"{server.uri()} {server.create_database('second_shard')}"
