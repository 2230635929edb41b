"""The commands that the sessions of noxfile.py run."""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


class Recorded:
    """Replaces nox's session and records its commands."""

    def __init__(self, environment: Path, *posargs: str) -> None:
        self.virtualenv = SimpleNamespace(location=str(environment))
        self.posargs = list(posargs)
        self.ran: list[tuple[str, ...]] = []
        self.installed: list[tuple[str, ...]] = []
        self.variables: dict[str, str] = {}
        """The variables that the last command gets in addition to those of the shell."""

    def install(self, *arguments: str) -> None:
        self.installed.append(arguments)

    def run_install(self, *arguments: str, **_: Any) -> str:
        if arguments[0] == "uv":
            return "[]"
        subprocess.run([sys.executable, *arguments[1:]], check=True)
        return ""

    def run(self, *arguments: str, **options: Any) -> str:
        self.ran.append(arguments)
        self.variables = options.get("env") or {}
        return "[]"


@pytest.fixture(scope="module")
def noxfile() -> Any:
    pytest.importorskip("nox")
    spec = importlib.util.spec_from_file_location("noxfile", ROOT / "noxfile.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("session", "command"), [("build_registry", "build"), ("check_registry", "check")])
def test_the_nox_session_builds_and_checks_a_registry(
    noxfile: Any, tmp_path: Path, session: str, command: str
) -> None:
    told = Recorded(tmp_path, "--json")
    getattr(noxfile, session)(told)
    assert told.ran[-1] == ("jackfield", command, "--json")


def test_the_fault_campaign_gets_the_options_after_the_dashes(noxfile: Any, tmp_path: Path) -> None:
    told = Recorded(tmp_path, "--kills", "2", "--seed", "7")
    noxfile.faults(told)
    assert told.ran[-1] == ("python", "-m", "faults", "--kills", "2", "--seed", "7")


@pytest.mark.parametrize("session", ["tests", "bench"])
def test_bytecode_is_cached_whatever_the_shell_sets(
    noxfile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: str
) -> None:
    monkeypatch.setattr(noxfile, "workspace", lambda _: None)
    monkeypatch.setattr(noxfile, "system_packages", lambda _: None)
    monkeypatch.setattr(noxfile, "node_packages", lambda _: None)
    told = Recorded(tmp_path)
    getattr(noxfile, session)(told)
    asked = subprocess.run(
        [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)"],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **told.variables},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert asked.stdout == "False\n"


class Apt(Recorded):
    """A session on a machine whose package lists offer only some packages."""

    def __init__(self, environment: Path, *offered: str) -> None:
        super().__init__(environment)
        self.offered = offered
        self.warned = ""

    def run(self, *arguments: str, **options: Any) -> str:
        super().run(*arguments, **options)
        # apt-get and apt-cache fail with 100, which must not end the session.
        assert options["success_codes"] == [0, 100]
        return f"Package: {arguments[-1]}" if arguments[-1] in self.offered else "True"

    def warn(self, text: str) -> None:
        self.warned = text


@pytest.mark.parametrize("offered", [("offered",), ()])
def test_missing_system_programs_are_installed_if_the_system_offers_them(
    noxfile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offered: tuple[str, ...]
) -> None:
    programs = {"no-such-program": "offered", "no-other-program": "unknown", sys.executable: "installed"}
    monkeypatch.setattr(noxfile, "SYSTEM", programs)
    monkeypatch.setattr(noxfile.os, "geteuid", lambda: 0)
    which = noxfile.shutil.which
    monkeypatch.setattr(
        noxfile.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else which(name)
    )
    told = Apt(tmp_path, *offered)
    noxfile.system_packages(told)
    installed = [each[-1] for each in told.ran if each[:2] == ("apt-get", "install")]
    assert installed == list(offered)
    assert told.warned.endswith("offered, unknown")


def installs(noxfile: Any, environment: Path) -> list[str]:
    """Return what a session in this environment installs: the lock, and members by name."""
    told = Recorded(environment)
    noxfile.workspace(told)
    return [
        Path(argument).name
        for command in told.installed
        for flag, argument in itertools.pairwise(command)
        if flag in ("-r", "-e")
    ]


def test_only_what_changed_is_installed_again(
    noxfile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / "environment"
    environment.mkdir()
    lock, members = tmp_path / "requirements.lock", [tmp_path / "one", tmp_path / "two"]
    lock.write_text("click==8.3.0\n")
    for member in members:
        member.mkdir()
        (member / "pyproject.toml").write_text(f"[project]\nname = {member.name!r}\n")
    monkeypatch.setattr(noxfile, "LOCK", lock)
    monkeypatch.setattr(noxfile, "MEMBERS", members)
    whole = ["requirements.lock", "one", "two"]
    assert [installs(noxfile, environment) for _ in range(2)] == [whole, []]

    lock.write_text("click==8.3.1\n")
    assert [installs(noxfile, environment) for _ in range(2)] == [["requirements.lock"], []]
    (members[0] / "pyproject.toml").write_text("[project]\nname = 'one'\nversion = '2'\n")
    assert [installs(noxfile, environment) for _ in range(2)] == [["one"], []]
    monkeypatch.setattr(noxfile, "MEMBERS", members[:1])
    assert installs(noxfile, environment) == []
    monkeypatch.setattr(noxfile, "MEMBERS", members)
    assert [installs(noxfile, environment) for _ in range(2)] == [["two"], []]


def test_nox_dev_serves_for_development(noxfile: Any, tmp_path: Path) -> None:
    told = Recorded(tmp_path, "--port", "0")
    noxfile.dev(told)
    assert told.ran[-1] == ("jackfield", "dev", "--port", "0")


def test_an_interrupted_installation_is_repeated(
    noxfile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert installs(noxfile, tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(noxfile, "_wanted_state", lambda: {"lock": "another", "members": {}})
        broken.setattr(noxfile, "_uninstall_leftovers", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            installs(noxfile, tmp_path)
    assert installs(noxfile, tmp_path)


def test_a_path_that_does_not_exist_is_named_in_an_error() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-n", "1", "tests/test_nothing.py"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "tests/test_nothing.py: there is no such file or folder" in ran.stderr
