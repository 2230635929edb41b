"""Fixtures for the tests of the host; host_harness.py has the servers and clients."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

# Test modules are imported by path here, so that their folder is not on it by itself.
sys.path.insert(0, str(Path(__file__).parent))

from host_harness import HostFolder, make_site
from jackfield_testkit.postgres import PostgresServer


@pytest.fixture(scope="session")
def host_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with the tools of these tests and their registry."""
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def host_folder(host_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostFolder:
    """Return a working folder for the hosts of one test."""
    monkeypatch.syspath_prepend(str(host_site))
    monkeypatch.setenv("HST_FOLDER", str(tmp_path))
    monkeypatch.setenv("HST_KEY", "k")
    monkeypatch.chdir(tmp_path)
    return HostFolder(tmp_path, host_site / "tool_registry.json", host_site)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Run a PostgreSQL server that the tests of this process share."""
    with PostgresServer.temporary() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def any_store_folder(host_folder: HostFolder, request: pytest.FixtureRequest) -> HostFolder:
    """Return a working folder for hosts on each store that several hosts can share."""
    if request.param == "sqlite":
        return host_folder
    server: PostgresServer = request.getfixturevalue("postgres")
    return replace(host_folder, database=server.uri())
