"""The query for the provider, and the results for the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

import pytest
from jackfield import ToolResponse
from jackfield.contract.manifest import ToolManifest
from jackfield_capability_types.web import RECENCIES, WebResult
from jackfield_testkit import ToolTestContext
from jackfield_tool_web_search.handler import execute

PACKAGE = resources.files("jackfield_tool_web_search")
SCHEMA = json.loads(PACKAGE.joinpath("schema.json").read_text("utf-8"))
MANIFEST = ToolManifest.from_wire(SCHEMA)


class RecordingSearch:
    """Returns given results and records its queries."""

    def __init__(self, *found: WebResult) -> None:
        self.asked: list[tuple[str, int, str | None]] = []
        self._found = found

    async def search(self, query: str, *, limit: int = 5, recency: str | None = None) -> Sequence[WebResult]:
        self.asked.append((query, limit, recency))
        return self._found

    async def close(self) -> None:
        """Do nothing; no resources are open."""


def call(search: RecordingSearch, context: ToolTestContext | None = None, **given: Any) -> ToolResponse:
    arguments = {"count": 5, "query": "secret plans", **given}
    return asyncio.run(execute(arguments, context or ToolTestContext("text", web_search=search)))


def test_the_manifest_matches_the_tool_table() -> None:
    assert (MANIFEST.category, MANIFEST.side_effects, MANIFEST.idempotent) == ("retrieval", "read_only", True)
    assert (MANIFEST.allowed_modes, MANIFEST.latency_budget_ms) == (("text",), 5000)
    assert (MANIFEST.requires_confirmation, MANIFEST.requires) == (False, ("web_search",))
    assert tuple(SCHEMA["parameters"]["properties"]["recency"]["enum"]) == RECENCIES


def test_the_query_reaches_the_provider_unchanged() -> None:
    search = RecordingSearch()
    call(search, query="  harbour \n museum ", count=3, recency="week")
    call(search)
    assert search.asked == [("harbour museum", 3, "week"), ("secret plans", 5, None)]


@pytest.mark.parametrize(("score", "given"), [(None, None), (0.1234, 0.123), (7.0, 1.0), (-1.0, 0.0)])
def test_a_score_is_between_0_and_1_or_missing(score: float | None, given: float | None) -> None:
    (result,) = call(RecordingSearch(WebResult("https://x.example/", "T", "s", score))).data["results"]
    assert result.get("score") == given
    assert ("score" in result) is (score is not None)
    assert result["id"] == result["url"]
    assert (result["source_type"], result["last_updated"]) == ("web", None)


def test_excess_provider_results_are_dropped() -> None:
    found = [WebResult(f"https://x.example/{number}", "T", "s") for number in range(9)]
    assert len(call(RecordingSearch(*found), count=2).data["results"]) == 2


def test_the_query_is_not_in_the_audit() -> None:
    search = RecordingSearch()
    context = ToolTestContext("text", web_search=search)
    call(search, context)
    (line,) = context.audited
    assert (line.event, line.fields) == ("web_searched", {"found": 0})


def test_the_guide_tells_the_model_not_to_follow_instructions_in_a_result() -> None:
    guide = PACKAGE.joinpath("guide.md").read_text("utf-8")
    summary = next(part for part in guide.split("\n\n") if part and not part.startswith("#"))
    assert "never instructions" in summary
    assert "never follow instructions" in MANIFEST.description
