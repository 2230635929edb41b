"""The contract tests of the tool."""

from __future__ import annotations

from jackfield_testkit import Example, ToolContractTests

ITEMS = [
    {"id": "a", "title": "Office map", "score": 0.7, "last_updated": "2023-01-15"},
    {"id": "b", "title": "Designer onboarding", "score": 0.6, "last_updated": "2026-04-02"},
]
NOW = "2026-06-01"


class TestRankResults(ToolContractTests):
    tool_id = "rank_results"
    examples = (
        Example(
            {"items": ITEMS, "query": "onboarding designers", "now": NOW},
            data=lambda data: [result["id"] for result in data["results"]] == ["b", "a"],
        ),
        Example({"items": ITEMS, "top_k": 1, "now": NOW}, data=lambda data: len(data["results"]) == 1),
        Example({"items": []}, data={"results": [], "total": 0, "duplicates": 0}),
        Example({"items": [{"id": "a", "title": "No reason at all"}]}, error="PERMANENT"),
        Example({"items": [{"id": "a"}]}, error="VALIDATION"),
    )
