"""Builds a distribution with what is installed, so that nothing unpinned is fetched for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from releases.members import Member


class CommandFailedError(Exception):
    """A program that did not do what it was asked, with all it said."""


def run(*command: str, cwd: Path | None = None, seconds: float = 600) -> str:
    """Run a program as in an environment of its own; what it said."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=clean_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=seconds,
    )
    if done.returncode:
        raise CommandFailedError(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def clean_environ() -> dict[str, str]:
    """The environment less what would let the surrounding one shine through."""
    ours = ("JACKFIELD_", "PYTEST_", "PYTHON", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def uv() -> str:
    """The program uv, of this environment if it has one."""
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert found, "this needs uv, which nox brings"
    return found


def build(member: Member, into: Path) -> tuple[Path, Path]:
    """The source distribution, and the wheel that was built from it."""
    _build(member, into)
    return into / f"{member.stem}-{member.version}.tar.gz", wheel_in(into, member)


def build_wheel_from_tree(member: Member, into: Path) -> Path:
    """The wheel as it is built where the source distribution is not made first."""
    _build(member, into, "--wheel")
    return wheel_in(into, member)


def wheel_in(folder: Path, member: Member) -> Path:
    """Where a member's wheel lies in a folder."""
    return folder / f"{member.stem}-{member.version}-py3-none-any.whl"


def _build(member: Member, into: Path, *more: str) -> None:
    run(
        uv(), "build", "--quiet", "--no-build-isolation", "--python", sys.executable,
        *more, "--out-dir", str(into), str(member.folder),
    )  # fmt: skip
