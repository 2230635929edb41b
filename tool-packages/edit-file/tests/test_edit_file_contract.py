"""The standard tests of the tool, on real files."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import mkdtemp
from typing import ClassVar

import pytest
from jackfield import Mode, ToolContext
from jackfield.offers import Services
from jackfield.store import MemoryStore
from jackfield_testkit import Example, ToolContractTests, ToolTestContext
from jackfield_workspace import jackfield_capabilities

FILES = {"app.toml": "port = 8000\nhost = 1\n", "twice.txt": "a\na\n", ".env": "KEY=1"}


class TestEditFile(ToolContractTests):
    tool_id = "edit_file"
    waived: ClassVar = {
        "test_time_budget": "it is run once, and what a busy disk takes for a flush would count in full"
    }
    place: Path

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.place = tmp_path

    def context(self, mode: Mode) -> ToolContext:
        # A folder of its own for every run, so that none stands in the way of the next.
        root = Path(mkdtemp(dir=self.place))
        for name, text in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, "utf-8")
            os.utime(root / name, (1_700_000_000, 1_700_000_000))
        offers = {offer.name: offer for offer in jackfield_capabilities()}
        made = offers["workspace"].create({"root": str(root)}, Services(MemoryStore()))
        return ToolTestContext(mode, workspace=made)

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
