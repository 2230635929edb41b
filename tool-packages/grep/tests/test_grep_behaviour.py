"""The answers to a search in voice and text."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from jackfield import Mode
from jackfield_capability_types.workspace import Match, Matches, Search
from jackfield_testkit import StubWorkspace, ToolTestContext
from jackfield_tool_grep.handler import execute

ASKED: dict[str, Any] = {
    "pattern": "needle",
    "path": "src",
    "glob": "*.py",
    "literal": True,
    "ignore_case": True,
    "context": 2,
    "limit": 30,
    "include_ignored": True,
}


def found(*matches: Match) -> StubWorkspace:
    return StubWorkspace(grep=Matches(matches, len({each.path for each in matches})))


def call(workspace: StubWorkspace, mode: Mode = "text") -> dict[str, Any]:
    data: dict[str, Any] = asyncio.run(execute(ASKED, ToolTestContext(mode, workspace=workspace))).data
    return data


def test_all_arguments_reach_the_search() -> None:
    workspace = found()
    call(workspace)
    call(workspace, "voice")
    assert workspace.calls == [
        ("grep", Search("needle", "src", "*.py", True, True, 2, 30, True)),
        ("grep", Search("needle", "src", "*.py", True, True, 0, 5, True)),
    ]


@pytest.mark.parametrize("text", ["word " * 90, "w" * 500, '"\\' * 250, "字" * 500])
def test_voice_answers_are_short_for_any_result(text: str) -> None:
    data = call(found(*(Match(f"{'p' * 200}/{number}", number, text) for number in range(1, 6))), "voice")
    assert len(orjson.dumps(data).decode()) <= 1500
    assert data["matches"]
    assert data["truncated"] is (len(data["matches"]) < 5)
    assert data["files"] == 5


def test_the_audit_counts_results_without_their_content() -> None:
    context = ToolTestContext(workspace=found(Match("a", 1, "needle"), Match("a", 2, "needle")))
    asyncio.run(execute(ASKED, context))
    assert context.audited == [("lines_found", {"matches": 2, "files": 1})]
