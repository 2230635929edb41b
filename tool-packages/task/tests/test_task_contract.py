"""The contract tests of the tool."""

from __future__ import annotations

from jackfield import Mode
from jackfield_testkit import Example, ToolContractTests, ToolTestContext
from stub_agents import SOURCE, StubAgents

WORK = {"title": "Rooms", "instructions": "Find out how rooms are booked."}


class TestTask(ToolContractTests):
    tool_id = "task"
    examples = (
        Example(WORK, data=lambda data: data["report"] == "Found." and data["sources"] == [SOURCE]),
        Example({**WORK, "tools": ["kb_search", "kb_get"]}, name="narrowed"),
        Example({"title": "x" * 80, "instructions": "y" * 4000}, name="the longest"),
        Example({**WORK, "title": " "}, error="PERMANENT"),
        Example({**WORK, "instructions": "\n"}, error="PERMANENT"),
        Example({**WORK, "title": "x" * 81}, error="VALIDATION"),
        Example({**WORK, "instructions": "y" * 4001}, error="VALIDATION"),
        Example({**WORK, "instructions": ""}, error="VALIDATION"),
        Example({**WORK, "tools": ["kb_get", "kb_get"]}, error="VALIDATION"),
        Example({**WORK, "tools": ["../kb"]}, error="VALIDATION"),
        Example({**WORK, "model": "large"}, error="VALIDATION"),
        Example({"title": "Rooms"}, error="VALIDATION"),
    )

    def context(self, mode: Mode) -> ToolTestContext:
        return ToolTestContext(mode, agents=StubAgents())
