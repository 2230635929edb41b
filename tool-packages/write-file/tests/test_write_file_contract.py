"""The standard tests of the tool, on real files."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import mkdtemp

import pytest
from jackfield import Mode, ToolContext
from jackfield.offers import Services
from jackfield.store import MemoryStore
from jackfield_testkit import Example, ToolContractTests, ToolTestContext
from jackfield_workspace import jackfield_capabilities

FILES = {"plan.md": "old\n", ".env": "KEY=1"}


class TestWriteFile(ToolContractTests):
    tool_id = "write_file"
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
