"""The contract tests of the tool, on real files."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit import Example, WorkspaceToolTests


class TestWriteFile(WorkspaceToolTests):
    tool_id = "write_file"
    files: ClassVar = {"plan.md": "old\n", ".env": "KEY=1"}
    examples = (
        Example(
            {"path": "notes/new.md", "content": "# New\n"},
            data={"path": "notes/new.md", "status": "created", "lines": 1},
            name="a new file",
        ),
        Example({"path": "empty", "content": ""}, data={"path": "empty", "status": "created", "lines": 0}),
        Example(
            {"path": "plan.md", "content": "new\n", "overwrite": True},
            data={
                "path": "plan.md",
                "status": "replaced",
                "lines": 1,
                "diff": "--- plan.md\n+++ plan.md\n@@ -1 +1 @@\n-old\n+new",
            },
            name="replaced",
        ),
        Example({"path": "plan.md", "content": "old\n"}, data=lambda data: data["status"] == "unchanged"),
        Example({"path": "plan.md", "content": "new\n"}, error="CONFLICT"),
        Example({"path": "../plan.md", "content": "x"}, error="PERMANENT", name="up"),
        Example({"path": ".env", "content": "x", "overwrite": True}, error="PERMANENT", name="hidden"),
        Example({"path": "plan.md/x", "content": "x"}, error="PERMANENT", name="below a file"),
        Example({"path": "", "content": "x"}, error="VALIDATION"),
        Example({"path": "x"}, error="VALIDATION"),
        Example({"path": "x", "content": "x" * 200_001}, error="VALIDATION"),
        Example({"path": "x", "content": "x", "overwrite": "yes"}, error="VALIDATION"),
    )
