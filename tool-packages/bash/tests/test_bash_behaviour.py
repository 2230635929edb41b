"""The answers for finished and stopped commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from importlib import resources
from typing import Any

from jackfield.confirmation import render
from jackfield.contract.manifest import ToolManifest
from jackfield.invocation import as_handler
from jackfield_capability_types.workspace import Finished
from jackfield_testkit import ToolTestContext
from jackfield_tool_bash.handler import execute

PACKAGE = resources.files("jackfield_tool_bash")
MANIFEST = ToolManifest.from_wire(json.loads(PACKAGE.joinpath("schema.json").read_text("utf-8")))
run_bash: Any = as_handler(execute)
ASKED: dict[str, Any] = {"command": "make", "timeout_seconds": 20}


class FixedShell:
    """A shell that returns a given outcome."""

    def __init__(self, finished: Finished) -> None:
        self.finished = finished
        self.asked: list[tuple[str, float]] = []

    async def run(
        self, command: str, *, seconds: float, output: Callable[[str], None] | None = None
    ) -> Finished:
        self.asked.append((command, seconds))
        if output is not None:
            for line in range(12):
                output(f"{line}\n")
                await asyncio.sleep(0)
        return self.finished


def test_the_manifest_matches_the_tool_table() -> None:
    assert (MANIFEST.category, MANIFEST.side_effects, MANIFEST.requires_confirmation) == (
        "action",
        "writes",
        True,
    )
    assert (MANIFEST.allowed_modes, MANIFEST.latency_budget_ms) == (("text",), 60_000)
    # The handler has to stop the command itself, so that its output is not lost.
    assert MANIFEST.timeout_ms > 60_000 + 5000
    assert (MANIFEST.idempotent, MANIFEST.requires) == (False, ("shell",))


def test_the_preview_shows_the_command_verbatim() -> None:
    card = render(MANIFEST.preview, "bash", {"command": "rm -r build\n# nothing else", "timeout_seconds": 30})
    assert card == "Run this command?\nrm -r build\\n# nothing else\nIt is stopped after 30 seconds."


def test_a_finished_command_is_reported_with_its_output() -> None:
    shell = FixedShell(Finished("done\n", 2, 1.23456, left_out=5, isolated=True))
    context = ToolTestContext(shell=shell)
    response = asyncio.run(run_bash(ASKED, context))
    assert response.data == {
        "output": "done\n",
        "exit_code": 2,
        "seconds": 1.235,
        "isolated": True,
        "left_out": 5,
    }
    assert shell.asked == [("make", 20)]
    assert context.shown == "".join(f"{line}\n" for line in range(12))
    assert context.audited == [("command_run", {"exit_code": 2, "stopped": ""})]


def test_a_stopped_command_may_have_had_effects() -> None:
    shell = FixedShell(Finished("x" * 5000 + "end", None, 20.0, stopped="it reached its time limit"))
    failure = asyncio.run(run_bash(ASKED, ToolTestContext(shell=shell))).failure
    assert failure is not None
    assert (failure.type, failure.partial_side_effects, failure.retryable) == ("TRANSIENT", True, False)
    assert failure.message == "The command was stopped after 20 seconds: it reached its time limit."
    assert failure.details is not None
    assert failure.details["output"].endswith("end")
    assert len(failure.details["output"]) == 1500
