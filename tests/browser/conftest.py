"""What the tests of the console share; the machinery is in consoles.py."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="these tests need playwright")
pytest.importorskip("axe_playwright_python", reason="these tests need axe-playwright-python")

from browser.consoles import Deployment, chromium, make_site


@pytest.fixture(scope="session")
def console_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tools of these tests, the registry they are frozen into, and a knowledge base with the sample."""
    chromium()
    site = make_site(tmp_path_factory.mktemp("site")).folder
    subprocess.run(
        [sys.executable, "-m", "jackfield_cli", "kb", "add", "--sample"],
        cwd=site, env=Deployment(site, site).environ, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return site


@pytest.fixture
def deployment(console_site: Path, tmp_path: Path) -> Deployment:
    """A folder of its own for the host of one test."""
    shutil.copytree(console_site / "knowledge", tmp_path / "knowledge")
    return Deployment(tmp_path, console_site)
