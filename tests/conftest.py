"""Empty virtual environments, into which distributions are really installed."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from process_environment import clean_environ

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
COMMAND_LINE = (ROOT / "kernel", ROOT / "plugins" / "builder", ROOT / "plugins" / "cli")
"""The distributions of the command `jackfield`."""
TYPES = ROOT / "plugins" / "capability-types"


def locked_requirements(members: Iterable[Path]) -> list[str]:
    """Return the entries of the lock that these members and their builds need, with all dependencies."""
    entries = re.split(r"^(?=[a-z0-9])", LOCK.read_text("utf-8"), flags=re.MULTILINE)[1:]
    locked = {canonicalize_name(entry.partition("==")[0].split("[")[0]): entry for entry in entries}
    # `editables` belongs to the build of an editable install.
    remaining = {("hatchling", ""), ("editables", ""), *((_project_name(each), "") for each in members)}
    wanted: set[tuple[str, str]] = set()
    while remaining:
        wanted.add(one := remaining.pop())
        name, extra = one
        for requirement in map(Requirement, importlib.metadata.requires(name) or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                other = str(canonicalize_name(requirement.name))
                remaining |= {(other, each) for each in ("", *requirement.extras)} - wanted
    names = {name for name, _ in wanted}
    return [entry for name, entry in locked.items() if name in names]


def _project_name(member: Path) -> str:
    name: str = tomllib.loads((member / "pyproject.toml").read_text("utf-8"))["project"]["name"]
    return name


class Environment:
    """A virtual environment with a working folder in which commands run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self._uv("venv", "--python", sys.executable, str(folder))
        self.work.mkdir()

    def install(self, *arguments: str) -> None:
        self._uv("pip", "install", "--python", str(self.folder / "bin" / "python"), *arguments)

    def install_locked(self, *members: Path) -> None:
        """Install what these members require in the locked versions; they can then be installed offline."""
        file = self.folder / "requirements.txt"
        file.write_text("".join(locked_requirements(members)))
        self.install("--require-hashes", "-r", str(file))

    def install_members(self, *members: Path, editable: bool = False) -> None:
        if editable:
            arguments = [argument for member in members for argument in ("-e", str(member))]
            self.install("--no-deps", "--no-build-isolation", *arguments)
            return
        wheels = tempfile.mkdtemp(dir=self.folder)
        # With the backend of the environment that runs the tests.
        command = [sys.executable, str(ROOT / "tests" / "wheels.py"), wheels, *map(str, members)]
        self.install("--no-deps", *_output(command).splitlines())

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
        """Run a command and return its JSON."""
        return json.loads(self.run("jackfield", *arguments, "--json").stdout)

    def _uv(self, *arguments: str) -> None:
        uv = shutil.which("uv")
        assert uv, "these tests need uv, which `nox -s tests` brings"
        _output([uv, *arguments])


def _output(command: list[str]) -> str:
    """Run a command that does not refer to the surrounding environment, and return its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environ())
    if done.returncode:
        pytest.fail(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


@pytest.fixture
def environment(tmp_path: Path) -> Callable[[str], Environment]:
    """Return a function that creates an empty environment with a name."""
    return lambda name: Environment(tmp_path / name)


@pytest.fixture
def members() -> list[Path]:
    """Return what a build needs, and every tool package of this repository."""
    packages = [path.parent for path in sorted((ROOT / "tool-packages").glob("*/pyproject.toml"))]
    return [*COMMAND_LINE, TYPES, *(path for path in packages if not path.name.startswith("_"))]


class Site:
    """A folder on the path with tools made from the template, as pip would install them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def tool(self, tool_id: str, **fields: Any) -> Path:
        """Add a tool whose manifest has these fields; return its package folder."""
        from jackfield_cli.scaffold import scaffold

        project = scaffold(tool_id, self.folder.parent / "projects", {})
        package = self.folder / f"jackfield_tool_{tool_id}"
        shutil.copytree(project / "src" / package.name, package)
        schema = json.loads((package / "schema.json").read_text())
        (package / "schema.json").write_text(json.dumps({**schema, **fields}))
        self._distribution(f"fab-{tool_id}", "jackfield.tools", tool_id, package.name)
        return package

    def plugin(self, name: str, source: str) -> None:
        """Add a plugin of one module with this source."""
        package = self.folder / name.replace("-", "_")
        package.mkdir()
        (package / "__init__.py").write_text(source)
        self._distribution(name, "jackfield.plugins", "main", package.name)

    def _distribution(self, name: str, group: str, entry: str, package: str) -> None:
        info = self.folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 0.1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{entry} = {package}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    made = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(str(made.folder))
    monkeypatch.setenv("PYTHONPATH", str(made.folder))
    monkeypatch.chdir(tmp_path)
    yield made
    for name in [name for name in sys.modules if name.startswith(("jackfield_tool_fab", "fab_"))]:
        del sys.modules[name]
