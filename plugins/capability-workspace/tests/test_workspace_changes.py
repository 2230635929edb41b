"""Writes and edits beyond the conformance suite of every workspace."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield import ErrorType, ToolError
from jackfield.store import MemoryStore
from jackfield_workspace.files import tree
from jackfield_workspace.files.edits import difference
from jackfield_workspace.files.encoding import FileText

Workspace = Callable[..., Any]


def refused(call: Any) -> ToolError:
    with pytest.raises(ToolError) as raised:
        asyncio.run(call)
    return raised.value


def names(root: Path) -> list[str]:
    return sorted(str(each.relative_to(root)) for each in root.rglob("*"))


def test_new_files_follow_the_umask(workspace: Workspace, root: Path) -> None:
    files = workspace()
    before = os.umask(0o027)
    try:
        asyncio.run(files.write("new.sh", "x"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "new.sh").stat().st_mode) == 0o640


def test_an_edit_replaces_one_text_and_says_what_changed(workspace: Workspace, lay_out: Any) -> None:
    root = lay_out({"app.toml": "".join(f"key{n} = {n}\n" for n in range(20))})
    change = asyncio.run(workspace().edit("app.toml", "key9 = 9", "key9 = nine\nmore"))
    assert (change.status, change.replacements, change.lines) == ("edited", 1, 21)
    assert change.diff.splitlines()[2:] == [
        "@@ -7,7 +7,8 @@",
        " key6 = 6",
        " key7 = 7",
        " key8 = 8",
        "-key9 = 9",
        "+key9 = nine",
        "+more",
        " key10 = 10",
        " key11 = 11",
        " key12 = 12",
    ]
    assert "key9 = nine\nmore\nkey10" in (root / "app.toml").read_text()


@pytest.mark.parametrize(
    ("text", "old", "said"),
    [
        ("one two", "three", "not in `file`"),
        ("two two", "two", "2 times"),
        ("aaa", "aa", "2 times"),
        ("one", "one", "are the same"),
    ],
)
def test_an_ambiguous_edit_changes_nothing(
    text: str, old: str, said: str, workspace: Workspace, lay_out: Any
) -> None:
    root = lay_out({"file": text})
    new = "one" if old == "one" else "new"
    error = refused(workspace().edit("file", old, new))
    assert said in error.message
    assert (error.type, bool(error.suggestion)) == (ErrorType.PERMANENT, True)
    assert (root / "file").read_text() == text


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("\ufeffone\r\ntwo\r\nthree\r\n".encode(), "\ufeffone\r\nzwei\r\ndrei\r\n".encode()),
        ("grün\ntwo\nthree\n".encode("cp1252"), "grün\nzwei\ndrei\n".encode("cp1252")),
        ("\ufefftwo\nthree\n".encode("utf-16-be"), "\ufeffzwei\ndrei\n".encode("utf-16-be")),
    ],
)
def test_an_edit_keeps_encoding_and_line_ends(
    data: bytes, expected: bytes, workspace: Workspace, root: Path
) -> None:
    (root / "file").write_bytes(data)
    asyncio.run(workspace().edit("file", "two\nthree", "zwei\ndrei"))
    assert (root / "file").read_bytes() == expected


def test_a_character_outside_the_encoding_is_rejected(workspace: Workspace, root: Path) -> None:
    data = "grün\n".encode("cp1252")
    (root / "file").write_bytes(data)
    assert "cp1252" in refused(workspace().edit("file", "gr", "→")).message
    assert (root / "file").read_bytes() == data


def test_a_concurrent_change_is_a_conflict(workspace: Workspace, lay_out: Any) -> None:
    root = lay_out({"file": "one\ntwo\n"})
    store = MemoryStore()
    files = workspace(store)
    asyncio.run(files.read("file"))
    (root / "file").write_text("one\ntwo\nthree\n")
    for call in (files.edit("file", "two", "zwei"), files.write("./file", "mine", overwrite=True)):
        error = refused(call)
        assert (error.type, error.retryable) == (ErrorType.CONFLICT, False)
        assert "Read it again" in (error.suggestion or "")
    assert (root / "file").read_text() == "one\ntwo\nthree\n"
    # Another host answers the next call; the store knows what the session has read.
    assert refused(workspace(store).edit("file", "two", "zwei")).type is ErrorType.CONFLICT
    # Another session has not read it, and knows only the text that it replaces.
    assert asyncio.run(workspace(store, session="two").edit("file", "three", "drei")).replacements == 1
    asyncio.run(files.read("file"))
    assert asyncio.run(files.edit("file", "two", "zwei")).replacements == 1
    assert asyncio.run(files.edit("file", "zwei", "two")).replacements == 1


def test_a_file_changed_at_the_last_moment_is_not_overwritten(
    workspace: Workspace, lay_out: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor saves between our read and our write."""
    root = lay_out({"file": "one\n"})
    flush = os.fsync

    def save_meanwhile(descriptor: int) -> None:
        flush(descriptor)
        (root / "file").write_text("theirs\n")

    monkeypatch.setattr(os, "fsync", save_meanwhile)
    assert refused(workspace().edit("file", "one", "two")).type is ErrorType.CONFLICT
    assert (root / "file").read_text() == "theirs\n"
    monkeypatch.setattr(os, "fsync", lambda _: (root / "new").write_text("theirs\n"))
    assert refused(workspace().write("new", "mine\n")).type is ErrorType.CONFLICT
    assert (root / "new").read_text() == "theirs\n"
    assert names(root) == ["file", "new"]


def test_a_disk_error_leaves_only_the_old_file(
    workspace: Workspace, lay_out: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = lay_out({"file": "one\n"})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    error = refused(workspace().edit("file", "one", "two"))
    assert (error.type, "No space left on device" in error.message) == (ErrorType.TRANSIENT, True)
    assert (root / "file").read_text() == "one\n"
    assert names(root) == ["file"]


def test_a_write_waits_for_another_with_a_timeout(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr(tree, "PATIENCE_SECONDS", 0.05)
    holder = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        error = refused(workspace().write("file", "x"))
        assert (error.type, error.retryable) == (ErrorType.TRANSIENT, True)
    finally:
        os.close(holder)
    assert asyncio.run(workspace().write("file", "x")).status == "created"


LINES = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=30)


@settings(deadline=None)
@given(LINES, LINES)
def test_a_diff_turns_the_old_text_into_the_new(old: list[str], new: list[str]) -> None:
    was, now = (FileText("".join(f"{line}\n" for line in lines)) for lines in (old, new))
    assert applied(difference("file", was, now), was.lines) == now.lines


def applied(diff: str, lines: list[str]) -> list[str]:
    """Apply a diff by its line numbers."""
    result: list[str] = []
    taken = 0
    for line in diff.splitlines()[2:]:
        if line.startswith("@@"):
            begins, _, count = line.split()[1].lstrip("-").partition(",")
            first = int(begins) - (0 if count == "0" else 1)
            result += lines[taken:first]
            taken = first
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert lines[taken] == line[1:]
            taken += 1
            if line.startswith(" "):
                result.append(line[1:])
    return result + lines[taken:]


def test_a_huge_diff_is_replaced_by_a_sentence() -> None:
    was, now = FileText("a\n" * 3000), FileText("b\n" * 3000)
    assert "3000 lines became 3000, from line 1 on" in difference("file", was, now)
