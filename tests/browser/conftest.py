"""Fixtures of the console tests; the harness is in harness.py."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="these tests need playwright")
pytest.importorskip("axe_playwright_python", reason="these tests need axe-playwright-python")

from jackfield_testkit.command_server import run_command

from browser.harness import Deployment, chromium, create_site, shared_chromium


@pytest.fixture(scope="session", autouse=True)
def _close_chromium() -> Iterator[None]:
    """End the browser after the last test."""
    yield
    if shared_chromium.cache_info().currsize:
        shared_chromium().close()


@pytest.fixture(scope="session")
def console_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tools of these tests with their registry, and the sample knowledge base."""
    chromium()
    site = create_site(tmp_path_factory.mktemp("site")).folder
    environ = Deployment(site, site).environ
    run_command(["kb", "add", "--sample"], cwd=site, env=environ, timeout=120).check_returncode()
    return site


@pytest.fixture
def deployment(console_site: Path, tmp_path: Path) -> Deployment:
    """A separate folder for the host of each test."""
    shutil.copytree(console_site / "knowledge", tmp_path / "knowledge")
    return Deployment(tmp_path, console_site)
