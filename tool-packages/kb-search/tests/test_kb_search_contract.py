"""The contract tests of the tool."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jackfield import Mode
from jackfield_capability_types.knowledge import Record
from jackfield_testkit import Example, MemoryKnowledgeBase, ToolContractTests, ToolTestContext

HARBOUR = Record(
    "project:harbour",
    "Harbour rebrand",
    "The harbour rebrand is led by Mara Example and ends in June.",
    type="project",
    tags=("branding", "active"),
    url="https://kb.example/harbour",
    source_type="crm",
    last_updated=datetime(2026, 2, 3, 9, tzinfo=UTC),
    metadata={"status": "active"},
)
LONG = Record(
    "doc:handbook",
    "Handbook of the harbour",
    "# Harbour\n\n| a | b |\n|---|---|\n\nSee [the map](https://kb.example/map). "
    + "The harbour opens. " * 400,
    metadata={"notes": "x" * 900, "nested": {"deep": ["a"]}, "shelf": 4},
)
MORE = [Record(f"doc:{number}", f"Harbour log {number}", "harbour " * 300) for number in range(12)]

FOUND: dict[str, Any] = {
    "id": "project:harbour",
    "type": "project",
    "title": "Harbour rebrand",
    "snippet": "The harbour rebrand is led by Mara Example and ends in June.",
    "score": 1.0,
    "source_type": "crm",
    "last_updated": "2026-02-03T09:00:00Z",
    "url": "https://kb.example/harbour",
    "metadata": {"status": "active"},
}


class TestKbSearch(ToolContractTests):
    tool_id = "kb_search"
    examples = (
        Example({"query": "harbour rebrand", "top_k": 1}, data={"results": [FOUND]}, name="the evidence"),
        Example({"query": "zeppelin"}, data={"results": []}, name="nothing found"),
        Example({"query": "harbour", "namespace": "public"}, data={"results": []}),
        Example(
            {"query": "harbour", "filters": {"type": "project", "tags": ["branding", "active"]}},
            data=lambda data: [each["id"] for each in data["results"]] == ["project:harbour"],
        ),
        Example(
            {
                "query": "harbour",
                "filters": {
                    "date_range": {"start": "2026-02-03T09:00:00Z", "end": "2026-02-03T10:00:00+01:00"}
                },
            },
            data=lambda data: [each["id"] for each in data["results"]] == ["project:harbour"],
        ),
        Example({"query": "harbour", "filters": {"date_range": {}}, "top_k": 3}),
        Example({"query": "harbour handbook", "return_fields": ["full_text", "sources"], "top_k": 3}),
        Example(
            {"query": "harbour", "include_snippets": False, "return_fields": ["snippet", "url"], "top_k": 3}
        ),
        Example({"query": "harbour", "top_k": 10}, name="more than one can listen to"),
        Example({"query": "   "}, error="PERMANENT"),
        Example(
            {
                "query": "x",
                "filters": {"date_range": {"start": "2026-02-02T00:00:00Z", "end": "2026-02-01T00:00:00Z"}},
            },
            error="PERMANENT",
        ),
        Example(
            {"query": "x", "filters": {"date_range": {"start": "2016-12-31T23:59:60Z"}}},
            error="PERMANENT",
            name="a leap second",
        ),
        Example({"query": ""}, error="VALIDATION"),
        Example({"query": "x" * 201}, error="VALIDATION"),
        Example({"query": "x", "namespace": "secret"}, error="VALIDATION"),
        Example({"query": "x", "top_k": 11}, error="VALIDATION"),
        Example({"query": "x", "top_k": 0}, error="VALIDATION"),
        Example({"query": "x", "filters": {"type": "cat"}}, error="VALIDATION"),
        Example({"query": "x", "filters": {"tags": list("abcdef")}}, error="VALIDATION"),
        Example({"query": "x", "filters": {"date_range": {"start": "yesterday"}}}, error="VALIDATION"),
        Example(
            {"query": "x", "filters": {"date_range": {"from": "2026-01-01T00:00:00Z"}}}, error="VALIDATION"
        ),
        Example({"query": "x", "return_fields": ["secrets"]}, error="VALIDATION"),
    )

    def context(self, mode: Mode) -> ToolTestContext:
        kb = MemoryKnowledgeBase([HARBOUR, LONG, *MORE])
        return ToolTestContext(mode, kb=kb.for_user("test-user"))
