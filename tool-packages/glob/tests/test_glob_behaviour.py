"""The listed files in voice and text."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from jackfield import Mode
from jackfield_capability_types.workspace import FoundFile, Listing
from jackfield_testkit import StubWorkspace, ToolTestContext
from jackfield_tool_glob.handler import execute

ASKED: dict[str, Any] = {"pattern": "**", "path": "", "limit": 40, "include_ignored": False}


def found(*paths: str, count: int = 0, notices: tuple[str, ...] = ()) -> StubWorkspace:
    files = tuple(FoundFile(path, 7, datetime(2026, 3, 2, 8, 0, 0, 5, UTC)) for path in paths)
    return StubWorkspace(glob=Listing(files, count or len(paths), notices))


def call(workspace: StubWorkspace, mode: Mode = "text") -> dict[str, Any]:
    data: dict[str, Any] = asyncio.run(execute(ASKED, ToolTestContext(mode, workspace=workspace))).data
    return data


def test_a_file_has_its_size_and_modification_time_in_utc() -> None:
    assert call(found("a/b.py"))["files"] == [
        {"path": "a/b.py", "size": 7, "modified": "2026-03-02T08:00:00Z"}
    ]


def test_omitted_files_are_counted() -> None:
    data = call(found("a", "b", count=90, notices=("Only some were looked at.",)))
    assert (data["count"], data["truncated"], data["notices"]) == (90, True, ["Only some were looked at."])


@pytest.mark.parametrize("name", ["short.py", "x" * 250, "/".join(["folder-with-a-long-name"] * 17)])
def test_voice_names_a_few_files_and_counts_all(name: str) -> None:
    data = call(found(*(f"{number}{name}" for number in range(30))), "voice")
    assert 1 <= len(data["files"]) <= 5
    assert (data["count"], data["truncated"]) == (30, True)
    assert len(orjson.dumps(data).decode()) <= 1500


def test_the_audit_has_the_number_of_files() -> None:
    context = ToolTestContext(workspace=found("a", "b"))
    asyncio.run(execute(ASKED, context))
    assert context.audited == [("files_found", {"count": 2})]
