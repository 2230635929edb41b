"""What a deployment may say, what it is told when it says something else, and what is there by default."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jackfield_workspace
import pytest
from jackfield.offers import Services
from jackfield.settings import SettingsError
from jackfield.store import MemoryStore
from jackfield_workspace.consent.policy import SETTINGS, FileConsent
from jackfield_workspace.files.hiding import ALWAYS
from jackfield_workspace.options import SHELL, WORKSPACE, ShellOptions, WorkspaceOptions

OFFERS = {offer.name: offer for offer in jackfield_workspace.jackfield_capabilities()}
DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "workspace.md").read_text("utf-8") if DOCS.is_dir() else ""
needs_pages = pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are in the repository only")


def test_without_a_folder_nothing_of_the_machine_is_there() -> None:
    assert OFFERS["workspace"].unavailable({}) == (
        'no folder is set up for files: add root = "..." to [capabilities.workspace]'
    )
    assert OFFERS["shell"].unavailable({}) == (
        'no folder is set up for commands: add root = "..." to [capabilities.shell]'
    )


def test_a_folder_for_files_is_none_for_commands(tmp_path: Path) -> None:
    assert OFFERS["workspace"].unavailable({"root": str(tmp_path)}) is None
    assert OFFERS["shell"].unavailable({"root": str(tmp_path)}) is None
    for name in ("workspace", "shell"):
        reason = OFFERS[name].unavailable({"root": str(tmp_path / "gone")})
        assert reason is not None
        assert "is not there" in reason


def test_a_sandbox_that_is_not_installed_withholds_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = OFFERS["shell"].unavailable({"root": str(tmp_path), "sandbox": "bubblewrap"})
    assert reason is not None
    assert "bwrap, which is not on PATH" in reason
    assert OFFERS["shell"].unavailable({"root": str(tmp_path)}) is None


@pytest.mark.parametrize(
    ("name", "said", "sentence"),
    [
        ("workspace", {"rot": "x"}, "unknown setting 'rot'; did you mean 'root'?"),
        ("workspace", {"root": 5}, "capabilities.workspace.root: 5 is not the path of a folder"),
        ("workspace", {"root": " "}, "is not the path of a folder"),
        ("workspace", {"max_lines": True}, "True is not a number of lines above 0"),
        ("workspace", {"max_lines": 0}, "0 is not a number of lines above 0"),
        ("workspace", {"max_lines": 1.5}, "1.5 is not a number of lines"),
        ("workspace", {"hidden": "secrets"}, "'secrets' is not a list such as"),
        ("workspace", {"gitignore": "no"}, "'no' is not true or false"),
        ("shell", {"max_seconds": 100}, "up to 60"),
        ("shell", {"sandbox": "docker"}, "'docker' is not one of none, bubblewrap"),
        ("shell", {"root": ".", "network": True}, 'sandbox is "none"'),
        ("shell", {"sandbox": "bubblewrap", "readable": ["tools"]}, "'tools' is not an absolute path"),
    ],
)
def test_a_setting_that_makes_no_sense_stops_the_start(
    name: str, said: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SettingsError, match=re.escape(sentence)):
        OFFERS[name].unavailable(said)


def test_patterns_that_make_no_sense_stop_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"policies\.file_consent\.trusted"):
        FileConsent({"trusted": ["../elsewhere/*"]})
    with pytest.raises(SettingsError, match="did you mean 'trusted'"):
        FileConsent({"trust": ["x"]})
    with pytest.raises(SettingsError, match=r"capabilities\.workspace\.hidden"):
        OFFERS["workspace"].create({"root": str(tmp_path), "hidden": ["!"]}, Services(MemoryStore()))


def test_asking_the_plugin_what_it_offers_imports_no_library() -> None:
    program = (
        "import sys, jackfield_workspace as w\n"
        "w.jackfield_capabilities(), w.jackfield_policies()\n"
        "assert not {'re2', 'pathspec', 'bracex'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@needs_pages
def test_every_setting_is_documented_with_its_default() -> None:
    for table in (WORKSPACE, SHELL, SETTINGS):
        for name, setting in table.items():
            row = re.search(rf"^\| `{name}` \| (.+?) \|", PAGE, re.MULTILINE)
            assert row, name
            if isinstance(setting.default, bool):
                assert str(setting.default).lower() in row[1]
            elif isinstance(setting.default, int | float):
                assert f"`{setting.default:g}`" in row[1] or f"`{setting.default}`" in row[1], name


@needs_pages
def test_every_hidden_pattern_is_documented() -> None:
    assert [pattern for pattern in ALWAYS if f"`{pattern}`" not in PAGE] == []


@needs_pages
def test_the_examples_of_the_page_are_accepted() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        said = tomllib.loads(block)
        tables = said.get("capabilities", {})
        if "workspace" in tables:
            WorkspaceOptions.of(tables["workspace"])
        if "shell" in tables:
            ShellOptions.of(tables["shell"])
        FileConsent(said.get("policies", {}).get("file_consent", {}))
