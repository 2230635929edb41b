"""One server per test process; tests that stop a server start their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jackfield_testkit.postgres import PostgresServer


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """A server that all tests of this process share; nothing stops or kills it."""
    with PostgresServer.temporary() as running:
        yield running
