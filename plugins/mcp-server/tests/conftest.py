"""Fixtures for the tests of the MCP server; mcp_harness.py has the hosts and clients."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Test modules are imported by path here, so that their folder is not on it by itself.
sys.path.insert(0, str(Path(__file__).parent))
# The hosts of the host's tests.
sys.path.append(str(Path(__file__).parents[2] / "host" / "tests"))

from mcp_harness import McpFolder, make_site


@pytest.fixture(scope="session")
def mcp_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with the tools of these tests and their registry."""
    return make_site(tmp_path_factory.mktemp("mcp-site"))


@pytest.fixture
def folder(mcp_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> McpFolder:
    """Return a working folder for the hosts of one test."""
    monkeypatch.syspath_prepend(str(mcp_site))
    monkeypatch.setenv("MCT_FOLDER", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return McpFolder(tmp_path, mcp_site)
