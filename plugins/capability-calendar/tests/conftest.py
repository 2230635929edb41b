"""Makes the helper modules importable, and starts one CalDAV server per test process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jackfield_testkit.calendar.radicale import Radicale, run_radicale

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def radicale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Radicale]:
    with run_radicale(tmp_path_factory.mktemp("radicale")) as server:
        yield server
