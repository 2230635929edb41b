"""The contract tests of the tool, on real files."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit import Example, WorkspaceToolTests


class TestGrep(WorkspaceToolTests):
    tool_id = "grep"
    files: ClassVar = {
        "src/app.py": "import sys\n\n\ndef load(path):\n    return path\n",
        "src/util.py": "def save(path):\n    load(path)\n",
        "README.md": "# Load\n\nUse `load()`.\n",
        "many.txt": f"needle {'x' * 600}\n" * 100,
        "marked.txt": "see <b class='x'>this</b> | a | [link](https://example.org/x) ```needle2``` \x07\n",
        ".gitignore": "build/\n",
        "build/out.py": "def load(): ...\n",
    }
    examples = (
        Example(
            {"pattern": r"^def \w+\(", "glob": "*.py", "context": 1},
            data={
                "matches": [
                    {
                        "path": "src/app.py",
                        "line": 4,
                        "text": "def load(path):",
                        "before": [""],
                        "after": ["    return path"],
                    },
                    {
                        "path": "src/util.py",
                        "line": 1,
                        "text": "def save(path):",
                        "after": ["    load(path)"],
                    },
                ],
                "files": 2,
                "truncated": False,
            },
            mode="text",
            name="evidence",
        ),
        Example(
            {"pattern": "load()", "literal": True},
            data=lambda data: (
                [(each["path"], each["line"]) for each in data["matches"]] == [("README.md", 3)]
            ),
            name="plain text",
        ),
        Example(
            {"pattern": "LOAD", "ignore_case": True, "path": "src"},
            data=lambda data: [each["line"] for each in data["matches"]] == [4, 2] and data["files"] == 2,
        ),
        Example({"pattern": "save", "path": "src/util.py"}, data=lambda data: len(data["matches"]) == 1),
        Example({"pattern": "zeppelin"}, data=lambda data: data["matches"] == [], name="nothing"),
        Example(
            {"pattern": "load", "path": "build", "include_ignored": True},
            data=lambda data: data["files"] == 1,
        ),
        Example(
            {"pattern": "needle", "limit": 200},
            data=lambda data: data["truncated"] == (len(data["matches"]) < 101),
            name="many long lines",
        ),
        Example({"pattern": "needle2"}, mode="voice", name="markup, spoken"),
        Example({"pattern": "(?=x)"}, error="PERMANENT", name="not RE2"),
        Example({"pattern": "x", "path": "gone"}, error="PERMANENT"),
        Example({"pattern": "x", "path": "../"}, error="PERMANENT", name="up"),
        Example({"pattern": "x", "glob": "/etc/*"}, error="PERMANENT", name="absolute"),
        Example({"pattern": ""}, error="VALIDATION"),
        Example({"pattern": "x" * 501}, error="VALIDATION"),
        Example({"pattern": "x", "context": 6}, error="VALIDATION"),
        Example({"pattern": "x", "limit": 0}, error="VALIDATION"),
        Example({}, error="VALIDATION"),
    )
