"""Text files in every encoding are read and written without a change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield import ErrorType, ToolError
from jackfield_workspace.files.encoding import NotTextError, read_text

Workspace = Callable[..., Any]


@settings(deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
def test_decoded_text_is_encoded_to_the_same_bytes(data: bytes) -> None:
    try:
        text = read_text(data)
    except NotTextError:
        return
    assert text.to_bytes() == data


@pytest.mark.parametrize(
    ("data", "lines", "encoding"),
    [
        ("\ufeffgrün\n".encode(), ("grün",), "utf-8"),
        ("\ufeffgrün\n".encode("utf-16-le"), ("grün",), "utf-16-le"),
        ("\ufeffgrün\n".encode("utf-16-be"), ("grün",), "utf-16-be"),
        ("grün €\n".encode("cp1252"), ("grün €",), "cp1252"),
    ],
)
def test_encodings_are_recognised(
    data: bytes, lines: tuple[str, ...], encoding: str, workspace: Workspace, root: Path
) -> None:
    (root / "file.txt").write_bytes(data)
    passage = asyncio.run(workspace().read("file.txt"))
    assert (passage.lines, passage.total, passage.encoding) == (lines, len(lines), encoding)


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\0", b"text\0text", b"\xff\xfe\x00\xd8"]
)
def test_binary_files_are_rejected(data: bytes, workspace: Workspace, root: Path) -> None:
    (root / "file").write_bytes(data)
    for call in (workspace().read("file"), workspace().edit("file", "t", "x")):
        with pytest.raises(ToolError, match="not a text file") as raised:
            asyncio.run(call)
        assert raised.value.type is ErrorType.PERMANENT
    assert (root / "file").read_bytes() == data


def test_an_excerpt_is_limited_by_the_request_and_the_settings(workspace: Workspace, lay_out: Any) -> None:
    lay_out({"file.txt": "".join(f"line {number}\n" for number in range(1, 101))})
    files = workspace(max_lines=30)
    passage = asyncio.run(files.read("file.txt", first=98, limit=10))
    assert (passage.lines, passage.first, passage.total) == (("line 98", "line 99", "line 100"), 98, 100)
    assert len(asyncio.run(files.read("file.txt", limit=1000)).lines) == 30
    with pytest.raises(ToolError, match="has 100 lines; line 101"):
        asyncio.run(files.read("file.txt", first=101))


def test_missing_paths_folders_and_protected_files_are_reported(workspace: Workspace, lay_out: Any) -> None:
    lay_out({"folder/file.txt": "x"})
    files = workspace()
    for path, said in (
        ("nothing.txt", "There is no `nothing.txt`"),
        ("nowhere/file.txt", "There is no `nowhere`"),
        ("folder", "is a folder"),
        ("folder/file.txt/deeper", "is not a folder"),
    ):
        with pytest.raises(ToolError, match=said) as raised:
            asyncio.run(files.read(path))
        assert raised.value.suggestion


def test_a_file_larger_than_the_limit_is_neither_read_nor_written(workspace: Workspace, root: Path) -> None:
    (root / "large.txt").write_bytes(b"x" * 2000)
    files = workspace(max_file_bytes=1000)
    for call in (
        files.read("large.txt"),
        files.edit("large.txt", "x", "y", replace_all=True),
        files.write("new.txt", "é" * 501),
    ):
        with pytest.raises(ToolError, match="limit for reading and writing is 1000"):
            asyncio.run(call)
    assert not (root / "new.txt").exists()
    # A file that an edit would make too large is not changed.
    (root / "small.txt").write_text("x" * 900)
    with pytest.raises(ToolError, match="is 1000"):
        asyncio.run(files.edit("small.txt", "x" * 900, "y" * 1001))
    assert (root / "small.txt").read_text() == "x" * 900
