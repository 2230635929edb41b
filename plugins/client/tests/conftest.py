"""What the tests of the client share; the machinery is in client_hosts.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Test modules are imported by path here, so that their folder is not on it by itself.
sys.path.insert(0, str(Path(__file__).parent))

from client_hosts import Deployment, make_site


@pytest.fixture(scope="session")
def client_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tools, and the registry they are frozen into."""
    return make_site(tmp_path_factory.mktemp("client-site"))


@pytest.fixture
def deployment(client_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """A folder from which hosts and commands are started."""
    monkeypatch.syspath_prepend(str(client_site))
    monkeypatch.setenv("PYTHONPATH", str(client_site))
    monkeypatch.setenv("CLI_FOLDER", str(tmp_path))
    monkeypatch.setenv("CLI_KEY", "k")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return Deployment(tmp_path, client_site)
