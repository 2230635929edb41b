"""What the sessions of noxfile.py run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


class Recorded:
    """Stands for nox's session, and keeps what it is told to run."""

    def __init__(self, *posargs: str) -> None:
        self.posargs = list(posargs)
        self.ran: list[tuple[str, ...]] = []

    def install(self, *arguments: str) -> None:
        """Nothing is installed here."""

    def run(self, *arguments: str, **_: Any) -> str:
        self.ran.append(arguments)
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
def test_a_registry_is_built_and_checked_by_the_command_line(
    noxfile: Any, session: str, command: str
) -> None:
    told = Recorded("--json")
    getattr(noxfile, session)(told)
    assert told.ran[-1] == ("jackfield", command, "--json")
