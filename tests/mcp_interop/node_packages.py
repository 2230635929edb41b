"""Packages from npm, pinned in npm.lock: `python -m mcp_interop.node_packages` installs them.

npm's own lock file names the registry that wrote it and repeats every manifest. Ours has a line for each
package: the folder, the version and the hash. `install` writes a lock file for npm from these lines, so that
npm fetches from whichever registry the machine uses and compares every hash.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WANTED, LOCK = HERE / "npm.toml", HERE / "npm.lock"
HEADER = "# Resolved from npm.toml by `nox -s lock`: the folder, version and hash of every package.\n"
INSTALLED = Path(sys.prefix) / "node_packages"
"""One environment has one set of packages, beside the Node.js that runs them."""


@dataclass(frozen=True)
class Pinned:
    """A line of the lock."""

    folder: str
    version: str
    integrity: str

    @property
    def parent(self) -> str:
        """The folder of the package that contains this one; empty for a package at the top."""
        return self.folder.rpartition("node_modules/")[0].rstrip("/")

    @property
    def name(self) -> str:
        return self.folder.rpartition("node_modules/")[2]


def node() -> str:
    """Return the path of Node.js in this environment."""
    return _program("node")


def script(package: str, path: str) -> Path:
    """Return the path of an installed package's file."""
    return INSTALLED / "node_modules" / package / path


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a server for Node.js, so that it listens on the loopback address only."""
    return {**os.environ, "NODE_OPTIONS": f"--require {HERE / 'loopback.cjs'}", **variables}


def is_installed() -> bool:
    """Return whether the packages are there, as the lock pins them."""
    done = INSTALLED / "installed"
    return done.exists() and done.read_text("utf-8") == _digest(LOCK)


def read(lock: str) -> list[Pinned]:
    """Return the lines of a lock."""
    lines = (line.split() for line in lock.splitlines() if line and not line.startswith("#"))
    return [Pinned(*line) for line in lines]


def install(lock: Path = LOCK, into: Path = INSTALLED) -> None:
    """Install what the lock pins, unless it is there already; raises RuntimeError with npm's message."""
    done, digest = into / "installed", _digest(lock)
    if done.exists() and done.read_text("utf-8") == digest:
        return
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    entries = _entries(read(lock.read_text("utf-8")))
    (into / "package.json").write_text(json.dumps({"private": True, **entries[""]}), "utf-8")
    document = {"lockfileVersion": 3, "packages": entries}
    (into / "package-lock.json").write_text(json.dumps(document), "utf-8")
    _npm(into, "ci", "--no-bin-links")
    done.write_text(digest, "utf-8")


def _digest(lock: Path) -> str:
    return sha256(lock.read_bytes()).hexdigest()


def _entries(pinned: list[Pinned]) -> dict[str, dict[str, Any]]:
    """Return npm's table of packages, in which each package depends on exactly those in its own folder."""
    entries: dict[str, dict[str, Any]] = {"": {"dependencies": {}}}
    for each in pinned:
        entries[each.folder] = {"version": each.version, "integrity": each.integrity, "dependencies": {}}
    for each in pinned:
        entries[each.parent]["dependencies"][each.name] = each.version
    return entries


def resolve(*, upgrade: bool) -> None:
    """Write the lock: the packages of npm.toml and what they need, in the versions that npm chooses.

    Without `upgrade`, a lock that has the packages of npm.toml stays as it is.
    """
    wanted = tomllib.loads(WANTED.read_text("utf-8"))
    locked = {each.name: each.version for each in read(LOCK.read_text("utf-8")) if not each.parent}
    if not upgrade and wanted["packages"].items() <= locked.items():
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        manifest = {"private": True, "dependencies": wanted["packages"]}
        (folder / "package.json").write_text(json.dumps(manifest), "utf-8")
        _npm(folder, "install", "--package-lock-only")
        entries = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]
    needed = _needed(entries, "", frozenset(wanted["without"]["packages"]), set())
    rows = [f"{folder} {entries[folder]['version']} {entries[folder]['integrity']}\n" for folder in needed]
    LOCK.write_text(HEADER + "".join(sorted(rows)), "utf-8")


def _needed(entries: dict[str, Any], folder: str, without: frozenset[str], seen: set[str]) -> Iterator[str]:
    """Yield the folders of the packages that one needs; optional ones are for other systems or for speed."""
    for name in entries[folder].get("dependencies", {}).keys() - without:
        found = _lookup(entries, folder, name)
        if found not in seen:
            seen.add(found)
            yield found
            yield from _needed(entries, found, without, seen)


def _lookup(entries: dict[str, Any], folder: str, name: str) -> str:
    """Return the folder in which Node.js finds a package by name: the nearest one above."""
    while (found := f"{folder}/node_modules/{name}".lstrip("/")) not in entries:
        folder = folder.rpartition("node_modules/")[0].rstrip("/")
    return found


def _npm(folder: Path, *arguments: str) -> None:
    # No script of a package runs, neither now nor in a test.
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel", "error")
    # Without a network it gives up within seconds.
    soon = ("--fetch-retry-mintimeout", "1000", "--fetch-retry-maxtimeout", "5000")
    # npm itself starts `node` by name.
    environ = {**os.environ, "PATH": f"{Path(node()).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [_program("npm"), *arguments, *quiet, *soon],
        cwd=folder, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"npm {arguments[0]} failed:\n{done.stderr}")


def _program(name: str) -> str:
    path = Path(sys.prefix) / "bin" / name
    return str(path) if path.exists() else str(path.with_suffix(".exe"))


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["lock"]:
            resolve(upgrade="--upgrade" in sys.argv)
        else:
            install()
    except RuntimeError as error:
        sys.exit(str(error))
