"""The contract tests of the tool, in a real shell."""

from __future__ import annotations

from pathlib import Path

import pytest
from jackfield import Mode, ToolContext
from jackfield_testkit import Example, ToolContractTests, ToolTestContext, capability


class TestBash(ToolContractTests):
    tool_id = "bash"
    cancel_grace_ms = 3000
    place: Path

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.place = tmp_path

    def context(self, mode: Mode) -> ToolContext:
        return ToolTestContext(mode, shell=capability("shell", {"root": str(self.place)}))

    examples = (
        Example(
            {"command": "echo hello; echo oh >&2"},
            data=lambda data: (
                data["output"] == "hello\noh\n" and data["exit_code"] == 0 and not data["isolated"]
            ),
        ),
        Example({"command": "exit 3"}, data=lambda data: data["exit_code"] == 3, name="it fails"),
        Example({"command": "seq 1 50000"}, data=lambda data: data["left_out"] > 0, name="much"),
        Example({"command": "sleep 30", "timeout_seconds": 1}, error="TRANSIENT", name="too long"),
        Example({"command": " \n"}, error="PERMANENT", name="blank"),
        Example({"command": ""}, error="VALIDATION"),
        Example({"command": "x" * 4001}, error="VALIDATION"),
        Example({"command": "true", "timeout_seconds": 61}, error="VALIDATION"),
        Example({"command": "true", "cwd": "/"}, error="VALIDATION"),
    )
