"""The contract tests of the tool."""

from __future__ import annotations

from datetime import UTC, datetime

from jackfield import Mode
from jackfield_capability_types.knowledge import Record
from jackfield_testkit import Example, MemoryKnowledgeBase, ToolContractTests, ToolTestContext

VACATION = Record(
    "process:vacation",
    "Asking for vacation",
    "Vacation is requested in the staff portal two weeks ahead.",
    type="process",
    tags=("staff",),
    last_updated=datetime(2026, 3, 14, 12, tzinfo=UTC),
    metadata={"owner": "people team"},
)
HANDBOOK = Record("doc:handbook", "Handbook", "The harbour opens at seven. " * 900)
LOGS = [
    Record(f"doc:log{number}", f"Log {number}", "# Log\n\n[map](https://kb.example)\n" * 200)
    for number in range(5)
]


class TestKbGet(ToolContractTests):
    tool_id = "kb_get"
    examples = (
        Example(
            {"ids": ["process:vacation"]},
            mode="text",
            data={
                "records": [
                    {
                        "id": "process:vacation",
                        "type": "process",
                        "title": "Asking for vacation",
                        "text": "Vacation is requested in the staff portal two weeks ahead.",
                        "next_offset": None,
                        "source_type": "document",
                        "last_updated": "2026-03-14T12:00:00Z",
                        "url": None,
                        "namespace": "studio",
                        "tags": ["staff"],
                        "metadata": {"owner": "people team"},
                    }
                ],
                "missing": [],
            },
            name="a record",
        ),
        Example({"ids": ["process:vacation"]}, mode="voice"),
        Example(
            {"ids": ["doc:unknown", "process:vacation"]},
            data=lambda data: data["missing"] == ["doc:unknown"] and len(data["records"]) == 1,
        ),
        Example({"ids": ["doc:unknown"]}, data={"records": [], "missing": ["doc:unknown"]}),
        Example({"ids": ["doc:handbook"], "offset": 100, "max_characters": 500}),
        Example(
            {"ids": ["doc:handbook"], "offset": 99999}, data=lambda data: data["records"][0]["text"] == ""
        ),
        Example({"ids": [f"doc:log{number}" for number in range(5)]}, name="five long ones"),
        Example({"ids": []}, error="VALIDATION"),
        Example({"ids": list("abcdef")}, error="VALIDATION"),
        Example({"ids": ["a", "a"]}, error="VALIDATION"),
        Example({"ids": [""]}, error="VALIDATION"),
        Example({"ids": "process:vacation"}, error="VALIDATION"),
        Example({"ids": ["a"], "offset": -1}, error="VALIDATION"),
        Example({"ids": ["a"], "max_characters": 20001}, error="VALIDATION"),
    )

    def context(self, mode: Mode) -> ToolTestContext:
        return ToolTestContext(
            mode, kb=MemoryKnowledgeBase([VACATION, HANDBOOK, *LOGS]).for_user("test-user")
        )
