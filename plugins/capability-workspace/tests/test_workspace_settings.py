"""The settings of files and shell, their faults, and the defaults."""

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
from jackfield.settings import SettingsError, parse_offer, parse_settings
from jackfield.store import MemoryStore
from jackfield_workspace.consent import FileConsent
from jackfield_workspace.files.exclusions import ALWAYS
from jackfield_workspace.settings import FileConsentSettings, ShellSettings, WorkspaceSettings

OFFERS = {offer.name: offer for offer in jackfield_workspace.jackfield_capabilities()}
DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "workspace.md").read_text("utf-8") if DOCS.is_dir() else ""
needs_pages = pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are in the repository only")


def unavailable(name: str, **table: Any) -> str | None:
    offer = OFFERS[name]
    return offer.unavailable(parse_offer("capabilities", offer, table))


def test_the_capability_is_unavailable_without_a_folder() -> None:
    assert unavailable("workspace") == (
        'no folder is set up for files: add root = "..." to [capabilities.workspace]'
    )
    assert unavailable("shell") == (
        'no folder is set up for commands: add root = "..." to [capabilities.shell]'
    )
    for name in ("workspace", "shell"):
        with pytest.raises(SettingsError, match=rf"^\[capabilities.{name}\] root: missing; expected a path$"):
            OFFERS[name].create(parse_offer("capabilities", OFFERS[name], {}), Services(MemoryStore()))


def test_a_folder_for_files_does_not_enable_commands(tmp_path: Path) -> None:
    assert unavailable("workspace", root=str(tmp_path)) is None
    assert unavailable("shell", root=str(tmp_path)) is None
    for name in ("workspace", "shell"):
        reason = unavailable(name, root=str(tmp_path / "gone"))
        assert reason is not None
        assert "does not exist" in reason


def test_the_shell_is_unavailable_without_an_installed_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = unavailable("shell", root=str(tmp_path), sandbox="bubblewrap")
    assert reason is not None
    assert "bwrap, which is not on PATH" in reason
    assert unavailable("shell", root=str(tmp_path)) is None


LINES = "max_lines: expected an integer number of lines above 0 and up to 10,000, got"
UNUSED = 'only used in a sandbox, and sandbox is "none"; set sandbox = "bubblewrap", or leave it out'


@pytest.mark.parametrize(
    ("name", "table", "fault"),
    [
        ("workspace", {"rot": "x"}, "rot: unknown setting; did you mean 'root'?"),
        ("workspace", {"root": 5}, "root: expected a path, got 5"),
        ("workspace", {"root": " "}, "root: expected a path, got ' '"),
        ("workspace", {"max_lines": True}, f"{LINES} true"),
        ("workspace", {"max_lines": 0}, f"{LINES} 0"),
        ("workspace", {"max_lines": 1.5}, f"{LINES} 1.5"),
        ("workspace", {"max_lines": 10_001}, f"{LINES} 10001"),
        (
            "workspace",
            {"hidden": "secrets"},
            "hidden: expected a list of strings, got 'secrets'; write ['secrets']",
        ),
        ("workspace", {"gitignore": "no"}, "gitignore: expected true or false, got 'no'"),
        (
            "shell",
            {"max_seconds": 100},
            "max_seconds: expected a number of seconds above 0 and up to 60, got 100",
        ),
        ("shell", {"sandbox": "docker"}, "sandbox: expected one of 'none', 'bubblewrap', got 'docker'"),
        ("shell", {"root": ".", "network": False}, f"network: {UNUSED}"),
        ("shell", {"root": ".", "readable": []}, f"readable: {UNUSED}"),
        (
            "shell",
            {"sandbox": "bubblewrap", "readable": ["tools"]},
            "readable[0]: expected an absolute path, got 'tools'",
        ),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(name: str, table: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        unavailable(name, **table)
    assert str(raised.value) == f"[capabilities.{name}] {fault}"


def test_invalid_patterns_fail_at_startup(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^\[policies.file_consent\] trusted: "):
        FileConsent(FileConsentSettings(("../elsewhere/*",)))
    with pytest.raises(SettingsError, match="trust: unknown setting; did you mean 'trusted'"):
        parse_settings(FileConsentSettings, {"trust": ["x"]}, "[policies.file_consent]")
    with pytest.raises(SettingsError, match=r"^\[capabilities.workspace\] hidden: "):
        OFFERS["workspace"].create(WorkspaceSettings(tmp_path, ("!",)), Services(MemoryStore()))


def test_listing_the_offers_imports_no_library() -> None:
    program = (
        "import sys, jackfield_workspace as w\n"
        "w.jackfield_capabilities(), w.jackfield_policies()\n"
        "assert not {'re2', 'pathspec', 'bracex'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@needs_pages
def test_every_hidden_pattern_is_documented() -> None:
    assert [pattern for pattern in ALWAYS if f"`{pattern}`" not in PAGE] == []


@needs_pages
def test_examples_in_the_docs_are_accepted() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        said = tomllib.loads(block)
        tables = said.get("capabilities", {})
        parse_settings(WorkspaceSettings, tables.get("workspace", {}), "[capabilities.workspace]")
        parse_settings(ShellSettings, tables.get("shell", {}), "[capabilities.shell]")
        consent = said.get("policies", {}).get("file_consent", {})
        parse_settings(FileConsentSettings, consent, "[policies.file_consent]")
