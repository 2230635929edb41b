"""Runs `jackfield` in this process, and installs generated packages into a folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from jackfield_cli import main


def jackfield(*arguments: Any, stdin: bytes | None = None) -> Result:
    """Run a command; an exception that is not reported as a message fails the test."""
    return CliRunner().invoke(main, [str(each) for each in arguments], input=stdin, catch_exceptions=False)


def install(project: Path, site: Path) -> None:
    """Build the wheel of a project with its own backend, and unpack it as pip does."""
    built = project / "dist"
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)],
        cwd=project, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
