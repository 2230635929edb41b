"""Nothing outside the workspace is read or written, by any path and during any concurrent change."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jackfield import ErrorType, ToolError
from jackfield_capability_types.workspace import Search

SECRET = "the neighbour's diary"
Workspace = Callable[..., Any]


@pytest.fixture
def outside(tmp_path: Path, root: Path) -> Path:
    """Return a folder outside the workspace, to which links in the workspace lead."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "diary.txt").write_text(SECRET)
    (root / "inner").mkdir()
    (root / "inner" / "plain.txt").write_text("plain")
    (root / "folder-link").symlink_to(folder)
    (root / "file-link.txt").symlink_to(folder / "diary.txt")
    (root / "inner" / "up").symlink_to("../..")
    (root / "chain").symlink_to("folder-link")
    return folder


def refused(call: Any) -> ToolError:
    with pytest.raises(ToolError) as raised:
        asyncio.run(call)
    return raised.value


@pytest.mark.parametrize(
    "path",
    [
        "../outside/diary.txt", "inner/../../outside/diary.txt", "/etc/passwd", "~/diary.txt",
        "folder-link/diary.txt", "file-link.txt", "inner/up/outside/diary.txt", "chain/diary.txt",
        "C:/diary.txt", "", ".", "a\0b", "a\nb", "x" * 300, "/".join("x" * 100), "\ud800",
    ],
)  # fmt: skip
def test_a_path_out_of_the_workspace_cannot_be_read_or_written(
    path: str, workspace: Workspace, outside: Path, root: Path
) -> None:
    files = workspace()
    before = sorted(str(each) for each in root.rglob("*"))
    for call in (
        files.read(path),
        files.write(path, "mine", overwrite=True),
        files.edit(path, "diary", "mine"),
    ):
        error = refused(call)
        assert error.type is ErrorType.PERMANENT
        assert error.suggestion
        assert SECRET not in error.message
        assert str(root) not in error.message
    assert (outside / "diary.txt").read_text() == SECRET
    assert sorted(str(each) for each in root.rglob("*")) == before


def test_no_search_pattern_leaves_the_workspace(workspace: Workspace, outside: Path) -> None:
    files = workspace()
    assert refused(files.grep(Search(".", folder="file-link.txt"))).type is ErrorType.PERMANENT
    for pattern in ("../outside/*", "/etc/*", "{../outside,inner}/*"):
        assert refused(files.glob(pattern)).type is ErrorType.PERMANENT


NAMES = st.sampled_from(
    [
        "..",
        ".",
        "",
        "inner",
        "up",
        "folder-link",
        "file-link.txt",
        "chain",
        "outside",
        "root",
        "diary.txt",
        "~",
    ]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(NAMES, min_size=1, max_size=7))
def test_no_combination_of_names_leaves_the_workspace(
    names: list[str], workspace: Workspace, outside: Path
) -> None:
    files = workspace()
    path = "/".join(names)
    for call in (files.read(path), files.edit(path, SECRET, "mine")):
        with pytest.raises(ToolError):
            asyncio.run(call)
    assert (outside / "diary.txt").read_text() == SECRET


@pytest.mark.parametrize("swapped", ["name", "diary.txt"])
def test_a_path_replaced_by_a_link_is_not_followed(
    swapped: str, workspace: Workspace, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between every check and the following open, a link replaces the path."""
    place = root / "name" / swapped if swapped == "diary.txt" else root / "name"
    target = outside / "diary.txt" if swapped == "diary.txt" else outside
    opening = os.open

    def lay_out() -> None:
        shutil.rmtree(root / "name", ignore_errors=True)
        (root / "name").unlink(missing_ok=True)
        (root / "name").mkdir()
        (root / "name" / "diary.txt").write_text("ours, the neighbour's diary's copy")

    def swap_and_open(path: Any, *args: Any, **more: Any) -> int:
        if path == swapped and not place.is_symlink():
            place.rename(root / f"was-{secrets.token_hex(4)}")
            place.symlink_to(target)
        return opening(path, *args, **more)

    files = workspace()
    monkeypatch.setattr(os, "open", swap_and_open)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: files.read("name/diary.txt"),
        lambda: files.edit("name/diary.txt", "diary", "mine"),
        lambda: files.write("name/diary.txt", "mine", overwrite=True),
        lambda: files.grep(Search("diary", folder="name/diary.txt")),
    )
    for call in calls:
        lay_out()
        assert "links are not followed" in refused(call()).message
        assert place.is_symlink()
    lay_out()
    found = asyncio.run(files.grep(Search("diary", glob="name/**")))
    assert found.matches == ()
    assert found.notices
    assert place.is_symlink()
    assert (outside / "diary.txt").read_text() == SECRET
    assert sorted(each.name for each in outside.iterdir()) == ["diary.txt"]


def test_special_files_are_rejected_without_blocking(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        try:
            # The address of such a socket must be short.
            os.chdir(root)
            listening.bind("socket")
        finally:
            os.chdir(here)
        files = workspace()
        for name in ("pipe", "socket"):
            assert "not a regular file" in refused(files.read(name)).message
            assert "not a regular file" in refused(files.write(name, "x", overwrite=True)).message
        assert asyncio.run(files.grep(Search("."))).matches == ()
        assert asyncio.run(files.glob("*")).count == 0


def test_a_hard_link_to_the_outside_is_not_written_through(
    workspace: Workspace, root: Path, outside: Path
) -> None:
    os.link(outside / "diary.txt", root / "shared.txt")
    asyncio.run(workspace().edit("shared.txt", "diary", "notebook"))
    assert (root / "shared.txt").read_text() == "the neighbour's notebook"
    assert (outside / "diary.txt").read_text() == SECRET


HIDDEN = (
    ".env", ".env.local", ".ENV", "deep/.env", ".git/config", ".Git/hooks/pre-commit", "sub/.git/HEAD",
    "tls/server.key", "a.PEM", ".ssh/id_ed25519", "id_rsa", ".aws/credentials", ".netrc", "jackfield.toml",
    "jackfield.db-wal", "tool_registry.json", "secrets.yaml",
)  # fmt: skip


@pytest.mark.parametrize("path", HIDDEN)
def test_possible_secrets_are_hidden_whether_they_exist_or_not(
    path: str, workspace: Workspace, lay_out: Any, root: Path
) -> None:
    files = workspace()
    missing = refused(files.read(path))
    lay_out({path: SECRET, "open.txt": "open"})
    assert refused(files.read(path)).message == missing.message
    assert "hidden" in missing.message
    assert "hidden" in refused(files.write(path, "x", overwrite=True)).message
    assert "hidden" in refused(files.edit(path, "diary", "x")).message
    assert "hidden" in refused(files.grep(Search("diary", folder=path))).message
    assert asyncio.run(files.grep(Search("diary"))).matches == ()
    assert [each.path for each in asyncio.run(files.glob("**")).files] == ["open.txt"]
    assert (root / path).read_text() == SECRET


def test_settings_can_hide_and_reveal_files(workspace: Workspace, lay_out: Any) -> None:
    lay_out({"private/plan.md": "x", ".env.ci": "y", ".env.example": "z"})
    files = workspace(hidden=["Private/", "!.env.ci"])
    assert {each.path for each in asyncio.run(files.glob("**")).files} == {".env.ci", ".env.example"}
    assert "hidden" in refused(files.read("private/plan.md")).message
    assert "hidden" in refused(files.write("private/new.md", "x")).message
    assert asyncio.run(files.read(".env.ci")).lines == ("y",)
