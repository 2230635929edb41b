"""The size of one answer, and continued reading without gaps."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from jackfield import Mode
from jackfield.truncation import LIMIT
from jackfield_testkit import ToolTestContext, capability
from jackfield_tool_read_file.handler import execute


def context(root: Path, mode: Mode = "text") -> ToolTestContext:
    return ToolTestContext(mode, workspace=capability("workspace", {"root": str(root)}))


def read(root: Path, mode: Mode = "text", **given: Any) -> dict[str, Any]:
    asked = {"path": "file.txt", "offset": 1, "limit": 1000, **given}
    data: dict[str, Any] = asyncio.run(execute(asked, context(root, mode))).data
    return data


@pytest.mark.parametrize("line", ["plain text of a line", '"quoted" \\ and\ttabbed', "字" * 50, ""])
def test_continued_reading_returns_every_line_once(line: str, tmp_path: Path) -> None:
    lines = [f"{line} {number}".rstrip() for number in range(400)]
    (tmp_path / "file.txt").write_text("\n".join(lines) + "\n", "utf-8")
    seen: list[str] = []
    offset: int | None = 1
    while offset is not None:
        data = read(tmp_path, offset=offset)
        # A longer answer would be truncated in the middle on its way to the model.
        assert len(orjson.dumps(data).decode()) < LIMIT - 400
        for number, shown in enumerate(data["content"].split("\n"), offset):
            told, _, text = shown.partition("\t")
            assert told == str(number)
            seen.append(text)
        offset = data["next_offset"]
    assert seen == lines


@pytest.mark.parametrize("line", ["word " * 400, "w" * 3000, '"\\' * 900, "字" * 900, "a line of it"])
def test_voice_answers_are_short_for_any_file(line: str, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text(f"{line}\n" * 90, "utf-8")
    data = read(tmp_path, "voice")
    assert len(orjson.dumps(data).decode()) <= 1500
    assert data["content"]
    assert data["next_offset"] == data["last_line"] + 1


def test_another_encoding_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_bytes("grün\n".encode("cp1252"))
    data = read(tmp_path)
    assert (data["content"], data["encoding"]) == ("1\tgrün", "cp1252")


def test_the_audit_names_the_file_but_not_its_content(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("private\n")
    made = context(tmp_path)
    asyncio.run(execute({"path": "file.txt", "offset": 1, "limit": 10}, made))
    assert made.audited == [("file_read", {"path": "file.txt", "lines": 1})]
