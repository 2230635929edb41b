"""The preview, the audit record and the length of the diff."""

from __future__ import annotations

import asyncio
import json
from importlib import resources
from typing import Any

from jackfield.confirmation import render
from jackfield.contract.manifest import ToolManifest
from jackfield_capability_types.workspace import FileChange
from jackfield_testkit import StubWorkspace, ToolTestContext
from jackfield_tool_edit_file.handler import execute

PACKAGE = resources.files("jackfield_tool_edit_file")
MANIFEST = ToolManifest.from_wire(json.loads(PACKAGE.joinpath("schema.json").read_text("utf-8")))
ASKED: dict[str, Any] = {"path": "a.txt", "old_text": "one\ntwo", "new_text": "private", "replace_all": False}


def told(diff: str) -> StubWorkspace:
    return StubWorkspace(edit=FileChange("a.txt", "edited", 2, diff, 1))


def test_the_manifest_matches_the_tool_table() -> None:
    assert (MANIFEST.category, MANIFEST.side_effects, MANIFEST.requires_confirmation) == (
        "action",
        "writes",
        "policy",
    )
    assert (MANIFEST.allowed_modes, MANIFEST.latency_budget_ms) == (("text",), 100)


def test_the_preview_shows_everything_that_will_be_written() -> None:
    assert render(MANIFEST.preview, "edit_file", ASKED).splitlines() == [
        "Change a.txt?",
        "Replace: one\\ntwo",
        "With: private",
        "Everywhere in the file: no",
    ]


def test_a_long_diff_is_truncated_and_says_so() -> None:
    data = asyncio.run(execute(ASKED, ToolTestContext(workspace=told("+x" * 5000)))).data
    assert len(data["diff"]) < 2600
    assert data["diff"].endswith("[... 7500 characters left out ...]")


def test_the_audit_names_the_file_but_not_its_content() -> None:
    context = ToolTestContext(workspace=told("+private"))
    asyncio.run(execute(ASKED, context))
    ((event, fields),) = context.audited
    assert (event, fields["path"]) == ("file_edited", "a.txt")
    assert "private" not in json.dumps(fields)
