"""The contract tests of the tool."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from jackfield import ErrorType, Mode, ToolError
from jackfield_capability_types.web import WebResult
from jackfield_testkit import Example, ToolContractTests, ToolTestContext

VISIT = WebResult(
    "https://museum.example.org/visit",
    "Plan your visit",
    "Open daily from 10 to 18.",
    1.0,
    datetime(2026, 10, 1, tzinfo=UTC),
)
MORE = [
    WebResult(f"https://port.example.org/{number}", f"Port {number}", "The port.") for number in range(20)
]


class MemorySearch:
    """Finds a museum and many ports."""

    async def search(self, query: str, *, limit: int = 5, recency: str | None = None) -> Sequence[WebResult]:
        if "limit" in query:
            raise ToolError(
                ErrorType.RATE_LIMIT, "The search provider limits the number of requests.", retryable=True
            )
        if "museum" in query:
            return [VISIT]
        return MORE[:limit] if "port" in query and recency is None else []

    async def close(self) -> None:
        """Do nothing; no resources are open."""


FOUND = {
    "id": "https://museum.example.org/visit",
    "title": "Plan your visit",
    "snippet": "Open daily from 10 to 18.",
    "score": 1.0,
    "source_type": "web",
    "last_updated": "2026-10-01T00:00:00Z",
    "url": "https://museum.example.org/visit",
}


class TestWebSearch(ToolContractTests):
    tool_id = "web_search"
    examples = (
        Example({"query": "museum"}, data={"results": [FOUND]}, name="the evidence"),
        Example({"query": "port"}, data=lambda data: len(data["results"]) == 5, name="five by default"),
        Example({"query": "port", "count": 10}, data=lambda data: len(data["results"]) == 10),
        Example({"query": "port", "recency": "day"}, data={"results": []}, name="nothing found"),
        Example({"query": "   "}, error="PERMANENT"),
        Example({"query": "rate limit"}, error="RATE_LIMIT"),
        Example({"query": ""}, error="VALIDATION"),
        Example({"query": "x" * 301}, error="VALIDATION"),
        Example({"query": "x", "count": 0}, error="VALIDATION"),
        Example({"query": "x", "count": 11}, error="VALIDATION"),
        Example({"query": "x", "recency": "hour"}, error="VALIDATION"),
        Example({"query": "x", "provider": "brave"}, error="VALIDATION"),
        Example({}, error="VALIDATION"),
    )

    def context(self, mode: Mode) -> ToolTestContext:
        return ToolTestContext(mode, web_search=MemorySearch())
