"""Makes the helper modules importable, and gives each test a folder and a database for its library."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jackfield_testkit.postgres import PostgresServer, oldest_programs

# Test modules are imported by file, so shared modules must be importable by name.
sys.path.insert(0, str(Path(__file__).parent))

from kb_postgres import Databases


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "knowledge"


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """Creates databases on one server, which runs as long as the tests."""
    with PostgresServer.temporary() as server:
        yield Databases(server)


@pytest.fixture(scope="session")
def oldest_databases() -> Iterator[Databases]:
    """Creates databases on PostgreSQL 15; skipped where it or its pgvector is not installed.

    Debian 12 has no package of pgvector for it; the environment variable can name a folder that has one.
    """
    programs = oldest_programs("vector")
    if programs is None:
        pytest.skip("PostgreSQL 15 with pgvector is not installed (JACKFIELD_TEST_POSTGRES_15)")
    with PostgresServer.temporary(programs=programs) as server:
        yield Databases(server)


@pytest.fixture
def create_oldest_database(oldest_databases: Databases) -> Iterator[Callable[[], str]]:
    """Creates databases on PostgreSQL 15 for one test."""
    with oldest_databases.lent() as create:
        yield create


@pytest.fixture
def create_database(databases: Databases) -> Iterator[Callable[[], str]]:
    """Creates databases for one test."""
    with databases.lent() as create:
        yield create


@pytest.fixture
def url(create_database: Callable[[], str]) -> str:
    """The address of a database of its own."""
    return create_database()
