"""Discovery reads only metadata, names the owners of conflicts, and survives broken distributions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from jackfield.distributions import locate
from jackfield_builder.discovery import Selection, discover
from jackfield_builder.findings import CheckCode, Finding
from jackfield_builder.tool_sources import locate_tools

FAB = Selection(allow=("fab-*",))


def codes(findings: tuple[Finding, ...] | list[Finding]) -> list[CheckCode]:
    return [finding.code for finding in findings]


def test_discovered_tools_are_sorted_and_not_imported(site: Any) -> None:
    bomb = "raise SystemExit('imported')\n"
    for name in ("zulu", "alpha", "mike"):
        folder = site.tool(name, handler=bomb)
        (folder / "__init__.py").write_text(bomb)
    site.plugin("fab-plugin", bomb)

    found = discover(FAB)
    located, findings = locate_tools(found.tools, (), found.families)

    assert [tool.name for tool in found.tools] == ["alpha", "mike", "zulu"]
    assert [source.folder.name for source in located] == ["fab_alpha", "fab_mike", "fab_zulu"]
    assert not findings
    assert not [name for name in sys.modules if name.startswith("fab_")]


def test_deny_takes_precedence_over_allow_and_lists_what_is_off(site: Any) -> None:
    for name in ("one", "two", "three"):
        site.tool(name)
    found = discover(Selection(allow=("fab-*",), deny=("two", "Fab_Three")))
    assert [tool.name for tool in found.tools] == ["one"]
    assert {"two", "three"} <= {entry.name for entry in found.switched_off}


def test_a_denied_plugin_is_never_imported(site: Any, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    site.plugin("fab-plugin", f"open({str(trace)!r}, 'w')\n")
    site.tool("echo")
    assert site.run("build", "--deny", "fab-plugin").returncode == 0
    assert not trace.exists()
    assert site.run("build").returncode == 0
    assert trace.exists()


def test_a_pattern_that_matches_nothing_is_reported(site: Any) -> None:
    site.tool("echo")
    found = discover(Selection(allow=("fab-*", "fab-ehco"), deny=("fab-nobody",)))
    assert codes(found.findings) == [CheckCode.ALLOW_UNMATCHED, CheckCode.ALLOW_UNMATCHED]
    assert "'fab-ehco' in allow" in found.findings[0].message


def test_a_tool_id_claimed_twice_names_both_distributions(site: Any) -> None:
    site.tool("echo", distribution="fab-first")
    site.tool("echo", distribution="fab-second", version="2.0.0")
    site.tool("other")
    found = discover(FAB)
    (finding,) = found.findings
    assert finding.code is CheckCode.TOOL_ID_TAKEN
    assert "fab-first 1.0.0" in finding.message
    assert "fab-second 2.0.0" in finding.message
    assert [tool.name for tool in found.tools] == ["other"]


def test_a_second_copy_on_the_path_names_both_places(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.tool("echo")
    other = type(site)(tmp_path / "other")
    other.tool("echo", version="0.9.0")
    monkeypatch.syspath_prepend(str(other.folder))
    (finding,) = discover(FAB).findings
    assert finding.code is CheckCode.SECOND_COPY
    assert str(site.folder) in finding.message
    assert str(other.folder) in finding.message


def test_an_old_version_in_the_same_folder_is_a_second_copy(site: Any) -> None:
    site.tool("echo")
    site.distribution("fab-echo", "0.9.0", {"jackfield.tools": {"echo": "fab_echo"}})
    assert CheckCode.SECOND_COPY in codes(discover(FAB).findings)


def test_the_same_folder_twice_on_the_path_is_one_copy(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site.tool("echo")
    monkeypatch.setattr(sys, "path", [str(site.folder), *sys.path])
    assert discover(FAB).findings == ()


def test_the_egg_info_of_an_editable_install_is_not_a_second_copy(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = type(site)(tmp_path / "source" / "src")
    info = site.distribution("fab-echo", "1.0.0", {"jackfield.tools": {"echo": "fab_echo"}})
    (info / "direct_url.json").write_text(
        f'{{"url": "file://{tmp_path / "source"}", "dir_info": {{"editable": true}}}}'
    )
    source.tool("echo")
    monkeypatch.syspath_prepend(str(source.folder))
    found = discover(FAB)
    assert found.findings == ()
    assert [tool.name for tool in found.tools] == ["echo"]


def test_broken_metadata_is_reported_and_other_tools_are_found(site: Any) -> None:
    site.tool("echo")
    nameless = site.distribution("fab-nameless", "1.0.0", {"jackfield.tools": {"nameless": "fab_nameless"}})
    (nameless / "METADATA").write_text("")
    garbled = site.distribution("fab-garbled", "1.0.0", {})
    (garbled / "entry_points.txt").write_text("[[[jackfield.tools\ngarbage")
    found = discover(FAB)
    assert codes(found.findings) == [CheckCode.BROKEN_METADATA, CheckCode.BROKEN_METADATA]
    assert [tool.name for tool in found.tools] == ["echo"]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("fab_echo:execute", CheckCode.BAD_ENTRY_POINT),
        ("not a package", CheckCode.BAD_ENTRY_POINT),
        ("fab_nowhere", CheckCode.PACKAGE_NOT_FOUND),
        ("fab_nowhere.inner", CheckCode.PACKAGE_NOT_FOUND),
    ],
)
def test_an_entry_point_without_a_package_is_reported(site: Any, value: str, code: CheckCode) -> None:
    site.distribution("fab-echo", "1.0.0", {"jackfield.tools": {"echo": value}})
    _, findings = locate_tools(discover(FAB).tools, ())
    assert codes(findings) == [code]
    assert "fab-echo 1.0.0" in str(findings[0].distribution)


def test_a_dotted_package_is_found_without_importing_its_parents(site: Any) -> None:
    parent = site.folder / "fab_parent"
    (parent / "inner").mkdir(parents=True)
    (parent / "__init__.py").write_text("raise SystemExit\n")
    (parent / "inner" / "__init__.py").write_text("raise SystemExit\n")
    assert locate("fab_parent.inner") == parent / "inner"
    assert locate("fab_parent.gone") is None


def test_without_tools_the_hint_says_how_to_get_one(site: Any) -> None:
    done = site.run("build")
    assert done.returncode == 1
    assert "JF001" in done.stderr
    # The hint differs if the allow list of these tests excludes installed tools.
    assert "jackfield new-tool" in done.stderr or "remove them from deny" in done.stderr

    site.tool("echo")
    refused = site.run("build", "--deny", "echo").stderr
    _, _, named = refused.partition("disables everything that is installed: ")
    assert "echo" in named.splitlines()[0].split(", ")
