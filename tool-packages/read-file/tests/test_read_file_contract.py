"""The contract tests of the tool, on real files."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit import Example, WorkspaceToolTests

MAIN = "import sys\n\nprint(sys.argv)\n"


class TestReadFile(WorkspaceToolTests):
    tool_id = "read_file"
    files: ClassVar = {
        "src/main.py": MAIN,
        "empty.txt": "",
        "long.txt": "".join(f"This is line number {number} of a long file.\n" for number in range(1, 501)),
        "wide.txt": "x" * 100_000,
        "marked.md": "# Title\n\n```\n<b>code</b>\n```\n| a | b |\n|---|---|\n[a](https://example.org/a)\n\x07\n",
        ".env": "KEY=1",
    }
    examples = (
        Example(
            {"path": "src/main.py"},
            data={
                "path": "src/main.py",
                "content": "1\timport sys\n2\t\n3\tprint(sys.argv)",
                "first_line": 1,
                "last_line": 3,
                "total_lines": 3,
                "next_offset": None,
            },
            mode="text",
            name="a whole file",
        ),
        Example(
            {"path": "src/main.py"},
            data=lambda data: data["content"] == "import sys print(sys.argv)",
            mode="voice",
            name="a whole file, spoken",
        ),
        Example(
            {"path": "./src//main.py", "offset": 3, "limit": 1},
            data=lambda data: data["path"] == "src/main.py" and data["first_line"] == data["last_line"] == 3,
            name="one line",
        ),
        Example(
            {"path": "long.txt", "offset": 1, "limit": 500},
            data=lambda data: data["next_offset"] == data["last_line"] + 1 and data["total_lines"] == 500,
            name="more than fits",
        ),
        Example(
            {"path": "wide.txt"},
            data=lambda data: data["shortened_lines"] == [1] and data["next_offset"] is None,
            name="one very long line",
        ),
        Example(
            {"path": "empty.txt"},
            data=lambda data: (data["content"], data["last_line"], data["total_lines"]) == ("", 0, 0),
            name="nothing in it",
        ),
        Example({"path": "marked.md"}, mode="voice", name="markup, spoken"),
        Example({"path": "gone.txt"}, error="PERMANENT"),
        Example({"path": "src"}, error="PERMANENT", name="a folder"),
        Example({"path": "../main.py"}, error="PERMANENT", name="up"),
        Example({"path": "/etc/passwd"}, error="PERMANENT", name="absolute"),
        Example({"path": ".env"}, error="PERMANENT", name="hidden"),
        Example({"path": "src/main.py", "offset": 4}, error="PERMANENT", name="behind the end"),
        Example({"path": ""}, error="VALIDATION"),
        Example({"path": "x" * 401}, error="VALIDATION"),
        Example({"path": "x", "offset": 0}, error="VALIDATION"),
        Example({"path": "x", "limit": 1001}, error="VALIDATION"),
        Example({}, error="VALIDATION"),
    )
