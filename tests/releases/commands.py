"""Runs build commands with the installed packages, so that nothing unpinned is downloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from releases.members import WorkspaceMember


class CommandFailedError(Exception):
    """A command that failed; the message contains its output."""


def run(*command: str, cwd: Path | None = None, seconds: float = 600) -> str:
    """Run a command without this process's settings and return its output."""
    result = subprocess.run(
        command,
        cwd=cwd,
        env=clean_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=seconds,
    )
    if result.returncode:
        raise CommandFailedError(f"{' '.join(command)} failed with {result.returncode}\n{result.stdout}")
    return result.stdout


def clean_environ() -> dict[str, str]:
    """Return the environment variables without those that would affect an isolated environment."""
    removed = ("JACKFIELD_", "PYTEST_", "PYTHON", "VIRTUAL_ENV", "OPENAI_", "GEMINI_", "GOOGLE_API_KEY")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(removed)}
    # A host that is not told its provider must not find one on this machine.
    return {**kept, "JACKFIELD_LOCAL_SERVERS": "none", "JACKFIELD_LOCAL_MODEL": "none"}


def uv() -> str:
    """Return the path of uv, preferably from this environment."""
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert found, "uv is missing; run this with nox, which installs it"
    return found


def build(member: WorkspaceMember, into: Path) -> tuple[Path, Path]:
    """Build the source distribution, and the wheel from it; return both paths."""
    _build(member, into)
    return into / f"{member.stem}-{member.version}.tar.gz", wheel_in(into, member)


def build_wheel_from_tree(member: WorkspaceMember, into: Path) -> Path:
    """Build the wheel directly from the source tree; return its path."""
    _build(member, into, "--wheel")
    return wheel_in(into, member)


def wheel_in(folder: Path, member: WorkspaceMember) -> Path:
    """Return the path of a member's wheel in a folder."""
    return folder / f"{member.stem}-{member.version}-py3-none-any.whl"


def _build(member: WorkspaceMember, into: Path, *more: str) -> None:
    run(
        uv(), "build", "--quiet", "--no-build-isolation", "--python", sys.executable,
        *more, "--out-dir", str(into), str(member.folder),
    )  # fmt: skip
