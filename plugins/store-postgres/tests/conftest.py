"""One server per test process; each test has a schema of its own."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jackfield_testkit.postgres import PostgresServer, oldest_programs

sys.path.insert(0, str(Path(__file__).parent))

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """A server that all tests of this process share; nothing stops or kills it."""
    with PostgresServer.temporary() as running:
        yield running


@pytest.fixture(scope="session")
def oldest_server() -> Iterator[PostgresServer]:
    """A server of the oldest supported version, from Debian's package; skipped where it is not installed."""
    programs = oldest_programs()
    if programs is None:
        pytest.skip("PostgreSQL 15 is not installed (Debian's package postgresql-15)")
    with PostgresServer.temporary(programs=programs) as running:
        yield running


@pytest.fixture
def new_place(server: PostgresServer) -> Callable[[], str]:
    """Returns places without a store."""
    return lambda: f"{server.uri()}#t{next(_numbers)}"


@pytest.fixture
def place(new_place: Callable[[], str]) -> str:
    """A place without a store."""
    return new_place()
