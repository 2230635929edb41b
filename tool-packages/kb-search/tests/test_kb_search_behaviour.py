"""Results from memory, and from the real knowledge base if it is installed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jackfield import ErrorType, Mode, ToolError, ToolResponse
from jackfield_capability_types.knowledge import Evidence, KnowledgeBase, Record, SearchResults
from jackfield_testkit import MemoryKnowledgeBase, ToolTestContext
from jackfield_tool_kb_search.handler import execute

DEFAULTS: dict[str, Any] = {"namespace": "studio", "top_k": 5, "include_snippets": True}

RECORDS = (
    Record(
        "process:vacation",
        "Asking for vacation",
        "Vacation is requested in the staff portal two weeks ahead. The team lead approves it.",
        type="process",
        tags=("staff",),
        url="https://kb.example/vacation",
        last_updated=datetime(2026, 3, 14, 12, tzinfo=UTC),
        metadata={"owner": "people team", "steps": [{"n": 1}]},
    ),
    Record(
        "doc:handbook",
        "Lighthouse handbook",
        "Routine paperwork and forms. " * 200
        + "The spare key hangs behind the barometer. "
        + "More forms. " * 200,
    ),
    Record("doc:diary", "Diary", "Ann wants a raise.", namespace="personal", owner="ann"),
)

Open = Callable[[], Any]


@asynccontextmanager
async def _memory() -> AsyncIterator[KnowledgeBase]:
    yield MemoryKnowledgeBase(RECORDS)


@asynccontextmanager
async def _embedded(folder: Path, records: Sequence[Record]) -> AsyncIterator[KnowledgeBase]:
    """Return the knowledge base of `jackfield-capability-kb`, with full-text search only."""
    from jackfield_kb.capability import LibraryKnowledge
    from jackfield_kb.settings import KnowledgeSettings, open_library

    settings = KnowledgeSettings(folder / "knowledge", "off")
    library = open_library(settings)
    library.write([(None, records)])
    library.refresh()
    library.close()
    base = LibraryKnowledge.from_settings(settings)
    try:
        yield base
    finally:
        await base.close()


@pytest.fixture(params=["memory", "embedded"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Yield a knowledge base that holds the records."""
    if request.param == "memory":
        return _memory
    if find_spec("jackfield_kb") is None:
        pytest.skip("jackfield-capability-kb is not installed")
    return lambda: _embedded(tmp_path, RECORDS)


def search(opened: Open, query: str, mode: Mode = "text", user: str = "ann", **given: Any) -> ToolResponse:
    async def run() -> ToolResponse:
        async with opened() as base:
            context = ToolTestContext(mode, user=user)
            context = ToolTestContext(mode, user=user, kb=base.for_session(context.session))
            return await execute({**DEFAULTS, "query": query, **given}, context)

    return asyncio.run(run())


def first(response: ToolResponse) -> dict[str, Any]:
    assert response.ok
    found: dict[str, Any] = response.data["results"][0]
    return found


def test_a_result_can_be_cited(opened: Open) -> None:
    found = first(
        search(opened, "vacation staff portal", return_fields=["snippet", "sources", "url", "metadata"])
    )
    assert found["id"] == "process:vacation"
    assert "staff portal" in found["snippet"]
    assert found["citation"] == (
        "Asking for vacation (process:vacation), document, updated 14 March 2026, https://kb.example/vacation"
    )
    assert (found["last_updated"], found["url"]) == ("2026-03-14T12:00:00Z", "https://kb.example/vacation")
    assert found["metadata"] == {"owner": "people team", "steps": [{"n": 1}]}
    assert 0 < found["score"] <= 1


def test_an_answer_says_that_the_index_is_not_complete() -> None:
    class Half:
        async def search(self, query: str, **options: Any) -> SearchResults:
            return SearchResults([Evidence(RECORDS[0], 0.5)], "The index is being built.")

    async def run() -> ToolResponse:
        context = ToolTestContext("text", user="ann", kb=Half())
        return await execute({**DEFAULTS, "query": "vacation"}, context)

    response = asyncio.run(run())
    assert first(response)["id"] == "process:vacation"
    assert response.meta["incomplete"] == "The index is being built."


def test_a_complete_answer_has_no_note(opened: Open) -> None:
    assert "incomplete" not in search(opened, "vacation").meta


def test_only_requested_fields_are_returned(opened: Open) -> None:
    always = {"id", "type", "title", "score", "source_type", "last_updated"}
    assert set(first(search(opened, "vacation", return_fields=[]))) == always
    assert set(first(search(opened, "vacation", return_fields=["url"]))) == always | {"url"}
    assert set(first(search(opened, "vacation", include_snippets=False))) == always | {"url", "metadata"}
    assert set(first(search(opened, "vacation"))) == always | {"url", "metadata", "snippet"}


def test_full_text_is_only_available_in_text_mode(opened: Open) -> None:
    asked: dict[str, Any] = {"return_fields": ["snippet", "full_text"]}
    text = first(search(opened, "spare key barometer", **asked))["full_text"]
    assert text.startswith("Routine paperwork")
    assert len(text) <= 4000
    spoken = search(opened, "spare key barometer", "voice", **asked)
    assert "full_text" not in first(spoken)
    assert spoken.data["left_out"] == ["full_text"]
    assert "barometer" in first(spoken)["snippet"]
    assert search(opened, "vacation", "voice", namespace="public", **asked).data == {"results": []}


def test_personal_records_are_visible_only_to_their_owner(opened: Open) -> None:
    assert first(search(opened, "raise", namespace="personal"))["id"] == "doc:diary"
    assert search(opened, "raise", namespace="personal", user="ben").data == {"results": []}


class FixedKnowledgeBase:
    """A knowledge base that returns given results."""

    def __init__(self, *found: Evidence | ToolError) -> None:
        self.found = found

    async def search(self, query: str, **asked: Any) -> list[Evidence]:
        for each in self.found:
            if isinstance(each, ToolError):
                raise each
        return [each for each in self.found if isinstance(each, Evidence)]


def ask(kb: FixedKnowledgeBase, mode: Mode = "voice") -> ToolResponse:
    return asyncio.run(execute({**DEFAULTS, "query": "x"}, ToolTestContext(mode, kb=kb)))


def test_errors_of_the_knowledge_base_reach_the_model_unchanged() -> None:
    with pytest.raises(ToolError) as raised:
        ask(FixedKnowledgeBase(ToolError(ErrorType.TRANSIENT, "The index is being rebuilt.", retryable=True)))
    assert raised.value.type is ErrorType.TRANSIENT


@pytest.mark.parametrize("results", [1, 3, 10])
@pytest.mark.parametrize("text", ["word " * 2000, "w" * 9000, "字" * 3000, '"quoted" \\ ' * 500])
def test_voice_answers_are_short_for_any_result(results: int, text: str) -> None:
    record = Record(
        "doc:long",
        text[:500],
        text,
        url=f"https://kb.example/{'u' * 3000}",
        metadata={f"key {n}": text[:70] for n in range(50)},
    )
    data = ask(FixedKnowledgeBase(*[Evidence(record, 0.5, text)] * results)).data
    assert len(json.dumps(data, ensure_ascii=False)) <= 1500
    assert len(data["results"]) >= min(results, 3)
    assert len(data["results"][0]["snippet"]) >= 40


def test_voice_answers_have_no_links_or_markup() -> None:
    marked = (
        "**See** [the map](https://kb.example/map)\n\n```\n<b>code</b>\n```\n| a | b |\n|---|---|\n\x07 done"
    )
    record = Record("doc:x", marked, marked, metadata={"note": marked[:40]})
    found = first(ask(FixedKnowledgeBase(Evidence(record, 0.5, marked))))
    assert found["snippet"] == "See the map code a b done"
    assert found["title"] == "See the map code a b done"
    assert first(ask(FixedKnowledgeBase(Evidence(record, 0.5, marked)), "text"))["snippet"] == marked


def test_a_score_stays_on_its_scale() -> None:
    record = Record("doc:x", "x", "x")
    scores = [
        each["score"]
        for each in ask(FixedKnowledgeBase(Evidence(record, 1.0000001), Evidence(record, 0.12345))).data[
            "results"
        ]
    ]
    assert scores == [1.0, 0.123]


def test_the_audit_counts_results_without_their_content() -> None:
    context = ToolTestContext("text", kb=MemoryKnowledgeBase(RECORDS).for_user("ann"))
    asyncio.run(execute({**DEFAULTS, "query": "vacation"}, context))
    assert context.audited == [("kb_searched", {"namespace": "studio", "found": 1})]
