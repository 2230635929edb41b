"""A CalDAV server for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jackfield_testkit.calendar.radicale import Radicale, run_radicale


@pytest.fixture(scope="session")
def radicale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Radicale]:
    with run_radicale(tmp_path_factory.mktemp("radicale")) as server:
        yield server
