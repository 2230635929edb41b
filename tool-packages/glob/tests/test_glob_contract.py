"""The contract tests of the tool, on real files."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit import Example, WorkspaceToolTests


class TestGlob(WorkspaceToolTests):
    tool_id = "glob"
    files: ClassVar = {
        "src/app.py": "x = 1\n",
        "src/deep/util.py": "y = 2\n",
        "README.md": "# Readme\n",
        ".gitignore": "build/\n",
        "build/out.txt": "made\n",
        **{f"many/file-{number:03}-{'x' * 80}.txt": "z" for number in range(60)},
    }
    examples = (
        Example(
            {"pattern": "**/*.py"},
            data=lambda data: (
                data["count"] == 2
                and not data["truncated"]
                and [each["path"] for each in data["files"]] == ["src/app.py", "src/deep/util.py"]
            ),
        ),
        Example(
            {"pattern": "*.py", "path": "src"},
            data={
                "count": 1,
                "files": [{"path": "src/app.py", "size": 6, "modified": "2023-11-14T22:13:20Z"}],
                "truncated": False,
            },
            mode="text",
            name="the facts",
        ),
        Example(
            {"pattern": "*.py", "path": "src"},
            data=lambda data: data["files"] == [{"path": "src/app.py"}],
            mode="voice",
        ),
        Example(
            {"pattern": "many/*", "limit": 200},
            data=lambda data: data["count"] == 60 and data["truncated"] == (len(data["files"]) < 60),
            name="many",
        ),
        Example(
            {"pattern": "many/*", "limit": 2},
            data=lambda data: len(data["files"]) == 2 and data["count"] == 60 and data["truncated"],
            name="a few of many",
        ),
        Example({"pattern": "*.rs"}, data={"count": 0, "files": [], "truncated": False}, name="nothing"),
        Example(
            {"pattern": "build/*"},
            data=lambda data: data["count"] == 0 and len(data["notices"]) == 1,
            name="ignored",
        ),
        Example({"pattern": "build/*", "include_ignored": True}, data=lambda data: data["count"] == 1),
        Example({"pattern": "*", "path": "gone"}, error="PERMANENT"),
        Example({"pattern": "*", "path": "README.md"}, error="PERMANENT", name="no folder"),
        Example({"pattern": "../*"}, error="PERMANENT", name="up"),
        Example({"pattern": "{a,b}" * 10}, error="PERMANENT", name="too many alternatives"),
        Example({"pattern": ""}, error="VALIDATION"),
        Example({"pattern": "x" * 201}, error="VALIDATION"),
        Example({"pattern": "*", "limit": 0}, error="VALIDATION"),
        Example({"pattern": "*", "limit": 201}, error="VALIDATION"),
        Example({}, error="VALIDATION"),
    )
