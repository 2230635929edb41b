"""The contract tests of the tool, on real files."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit import Example, WorkspaceToolTests


class TestEditFile(WorkspaceToolTests):
    tool_id = "edit_file"
    files: ClassVar = {"app.toml": "port = 8000\nhost = 1\n", "twice.txt": "a\na\n", ".env": "KEY=1"}
    waived: ClassVar = {
        "test_time_budget": "it is run once, and what a busy disk takes for a flush would count in full"
    }
    examples = (
        Example(
            {"path": "app.toml", "old_text": "8000", "new_text": "9000"},
            data={
                "path": "app.toml",
                "replacements": 1,
                "lines": 2,
                "diff": "--- app.toml\n+++ app.toml\n@@ -1,2 +1,2 @@\n-port = 8000\n+port = 9000\n host = 1",
            },
            name="the diff",
        ),
        Example(
            {"path": "twice.txt", "old_text": "a", "new_text": "b", "replace_all": True},
            data=lambda data: data["replacements"] == 2,
            name="everywhere",
        ),
        Example(
            {"path": "app.toml", "old_text": "port = 8000\n", "new_text": ""},
            data=lambda data: data["lines"] == 1,
        ),
        Example({"path": "twice.txt", "old_text": "a", "new_text": "b"}, error="PERMANENT", name="not clear"),
        Example(
            {"path": "app.toml", "old_text": "nine", "new_text": "b"}, error="PERMANENT", name="not there"
        ),
        Example({"path": "gone", "old_text": "a", "new_text": "b"}, error="PERMANENT"),
        Example({"path": "../app.toml", "old_text": "a", "new_text": "b"}, error="PERMANENT", name="up"),
        Example({"path": ".env", "old_text": "KEY", "new_text": "b"}, error="PERMANENT", name="hidden"),
        Example({"path": "app.toml", "old_text": "", "new_text": "b"}, error="VALIDATION"),
        Example({"path": "app.toml", "old_text": "a"}, error="VALIDATION"),
        Example({"path": "app.toml", "old_text": "x" * 20_001, "new_text": ""}, error="VALIDATION"),
    )
