"""Environments as users have them: empty ones, into which distributions are really installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


class Environment:
    """A virtual environment of its own, with a working folder in which commands run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self._uv("venv", "--python", sys.executable, str(folder))
        self.work.mkdir()

    def install(self, *arguments: str) -> None:
        self._uv("pip", "install", "--python", str(self.folder / "bin" / "python"), *arguments)

    def install_locked(self) -> None:
        """What the lock pins, so that members can be installed without asking anybody else."""
        self.install("--require-hashes", "-r", str(ROOT / "requirements.lock"))

    def install_members(self, *members: Path | str, editable: bool = False) -> None:
        flags = ["-e"] if editable else []
        arguments = [argument for member in members for argument in (*flags, str(member))]
        self.install("--no-deps", "--no-build-isolation", *arguments)

    def run(self, program: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(self.folder / "bin" / program), *arguments],
            cwd=self.work,
            env={**clean_environ(), "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            pytest.fail(f"{program} {' '.join(arguments)}\n{done.stdout}\n{done.stderr}")
        return done

    def jackfield(self, *arguments: str) -> Any:
        """A command's JSON."""
        return json.loads(self.run("jackfield", *arguments, "--json").stdout)

    def _uv(self, *arguments: str) -> None:
        uv = shutil.which("uv")
        assert uv, "these tests need uv, which `nox -s tests` brings"
        done = subprocess.run(
            [uv, *arguments], capture_output=True, text=True, check=False, env=clean_environ()
        )
        if done.returncode:
            pytest.fail(f"uv {' '.join(arguments)}\n{done.stderr}")


def clean_environ() -> dict[str, str]:
    """The environment less what would let the surrounding one shine through."""
    hidden = {
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "PYTEST_ADDOPTS",
        "JACKFIELD_ALLOW",
        "JACKFIELD_DENY",
        "JACKFIELD_REGISTRY",
    }
    return {name: value for name, value in os.environ.items() if name not in hidden}


@pytest.fixture
def environment(tmp_path: Path) -> Callable[[str], Environment]:
    """Makes an empty environment under a name."""
    return lambda name: Environment(tmp_path / name)


@pytest.fixture
def members() -> list[Path]:
    """The kernel and every tool package of this repository."""
    packages = [path.parent for path in sorted((ROOT / "tool-packages").glob("*/pyproject.toml"))]
    return [ROOT / "kernel", *(path for path in packages if not path.name.startswith("_"))]
