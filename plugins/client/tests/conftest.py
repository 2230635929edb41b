"""Fixtures of the client's tests; the hosts are in client_hosts.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Test modules are imported by path, so their folder is not on sys.path.
sys.path.insert(0, str(Path(__file__).parent))

from client_hosts import Deployment, create_site


@pytest.fixture(scope="session")
def client_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tools and their registry."""
    return create_site(tmp_path_factory.mktemp("client-site"))


@pytest.fixture
def deployment(client_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """A working folder for hosts and commands."""
    monkeypatch.syspath_prepend(str(client_site))
    monkeypatch.setenv("PYTHONPATH", str(client_site))
    monkeypatch.setenv("CLI_FOLDER", str(tmp_path))
    monkeypatch.setenv("CLI_KEY", "k")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return Deployment(tmp_path, client_site)
