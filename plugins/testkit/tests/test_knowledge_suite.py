"""The knowledge suite: the knowledge base in memory passes, and broken ones fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from jackfield import SessionView
from jackfield_capability_types.knowledge import Evidence, Filters, KnowledgeBase, Record
from jackfield_testkit import KnowledgeContractTests, MemoryKnowledgeBase
from jackfield_testkit.knowledge.harness import LIGHTHOUSE, RECORDS, KnowledgeHarness
from jackfield_testkit.knowledge.memory import MemoryKnowledgeView
from jackfield_testkit.suite import suite_tests

TESTS = suite_tests(KnowledgeContractTests)


class TestMemoryKnowledgeBase(KnowledgeContractTests):
    async def create_knowledge_base(self, folder: Path, records: Sequence[Record]) -> KnowledgeBase:
        return MemoryKnowledgeBase(records)


# Each of these breaks one guarantee, and the contract test next to it in BROKEN has to fail.


class Broken(MemoryKnowledgeView):
    """Changes the query or its results."""

    async def search(
        self,
        query: str,
        *,
        namespace: str = "studio",
        filters: Filters | None = None,
        limit: int = 5,
        snippets: bool = True,
    ) -> Sequence[Evidence]:
        options = self.asked({"namespace": namespace, "filters": filters, "limit": limit})
        found = await super().search(self.query(query), snippets=snippets, **options)
        return self.found(list(found))

    def query(self, query: str) -> str:
        return query

    def asked(self, options: dict[str, Any]) -> dict[str, Any]:
        return options

    def found(self, found: list[Evidence]) -> list[Evidence]:
        return found


class StrangersFirst(Broken):
    def found(self, found: list[Evidence]) -> list[Evidence]:
        spare = [each for each in RECORDS if each.id not in {one.record.id for one in found}]
        return [Evidence(each, 1.0, "") for each in spare] + found


class ScoresBeyondOne(Broken):
    def found(self, found: list[Evidence]) -> list[Evidence]:
        return [replace(each, score=each.score * 12) for each in found]


class Twice(Broken):
    def found(self, found: list[Evidence]) -> list[Evidence]:
        return [each for each in found for _ in range(2)]


class OverTheLimit(Broken):
    def asked(self, options: dict[str, Any]) -> dict[str, Any]:
        return {**options, "limit": options["limit"] + 1}


class ForgetsMetadata(Broken):
    def found(self, found: list[Evidence]) -> list[Evidence]:
        return [replace(each, record=replace(each.record, metadata={})) for each in found]


class ShowsTheBeginning(Broken):
    def found(self, found: list[Evidence]) -> list[Evidence]:
        return [replace(each, snippet=each.record.text[:200]) for each in found]


class Highlights(Broken):
    def found(self, found: list[Evidence]) -> list[Evidence]:
        return [replace(each, snippet=f"<b>{each.snippet}</b>") for each in found]


class AlwaysSnippets(Broken):
    def found(self, found: list[Evidence]) -> list[Evidence]:
        return [replace(each, snippet=each.record.text[:100]) for each in found]


class CertainOfEverything(Broken):
    def found(self, found: list[Evidence]) -> list[Evidence]:
        return found or [Evidence(LIGHTHOUSE, 0.9)]


class OneNamespace(Broken):
    def asked(self, options: dict[str, Any]) -> dict[str, Any]:
        return {**options, "namespace": "studio"}


class ChangedFilters(Broken):
    """Changes the filters."""

    def asked(self, options: dict[str, Any]) -> dict[str, Any]:
        filters = options["filters"] or Filters()
        return {**options, "filters": self.filters(filters)}

    def filters(self, filters: Filters) -> Filters:
        return filters


class IgnoresTypes(ChangedFilters):
    def filters(self, filters: Filters) -> Filters:
        return replace(filters, type=None)


class AnyTag(ChangedFilters):
    def filters(self, filters: Filters) -> Filters:
        return replace(filters, tags=filters.tags[:1])


class LeavesOutTheEnds(ChangedFilters):
    def filters(self, filters: Filters) -> Filters:
        start, end = filters.updated_from, filters.updated_until
        one = LIGHTHOUSE.last_updated
        assert one is not None
        late = start and start + (one.resolution)
        return replace(filters, updated_from=late, updated_until=end and end - one.resolution)


class ComparesDigits(ChangedFilters):
    def filters(self, filters: Filters) -> Filters:
        start = filters.updated_from
        return replace(filters, updated_from=start and start.replace(tzinfo=UTC))


class DatesWhatHasNoDate(Broken):
    def asked(self, options: dict[str, Any]) -> dict[str, Any]:
        filters = options["filters"]
        ranged = filters and filters.updated_from and not (filters.type or filters.tags)
        return {**options, "filters": None if ranged else filters}


class FiltersLate(Broken):
    async def search(self, query: str, **options: Any) -> Sequence[Evidence]:
        filters = options.pop("filters", None)
        found = await MemoryKnowledgeView.search(self, query, **options)
        return [each for each in found if filters is None or filters.type in (None, each.record.type)]


class QueryLanguage(Broken):
    def query(self, query: str) -> str:
        if query.count("(") != query.count(")"):
            raise ValueError("unbalanced parentheses")
        return query


class PhrasesAreLiteral(Broken):
    def query(self, query: str) -> str:
        return "" if '"' in query else query


class OnlyAscii(Broken):
    def query(self, query: str) -> str:
        return query.encode("ascii", "ignore").decode()


class ByIdOrder(Broken):
    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        return sorted(await super().get(ids), key=lambda each: each.id)


class FailsOnUnknown(Broken):
    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        found = await super().get(ids)
        if len(found) < len(ids):
            raise KeyError("unknown id")
        return found


class GivesPassages(Broken):
    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        return [replace(each, text=each.text[:2000]) for each in await super().get(ids)]


class TellsEverybody(MemoryKnowledgeBase):
    """Checks access in `search` but not in `get`."""

    def for_session(self, session: SessionView) -> MemoryKnowledgeView:
        everything = list(self._records.values())
        view = super().for_session(session)
        view.get = MemoryKnowledgeView(everything).get  # type: ignore[method-assign]
        return view


class NamesWithoutCase(MemoryKnowledgeBase):
    def for_user(self, user: str | None) -> MemoryKnowledgeView:
        return super().for_user(user.strip().lower() if user else user)


class HidesTheOwners(MemoryKnowledgeBase):
    def for_user(self, user: str | None) -> MemoryKnowledgeView:
        return super().for_user(None)


class OnlyForUsersWithAName(MemoryKnowledgeBase):
    def for_user(self, user: str | None) -> MemoryKnowledgeView:
        return super().for_user(user) if user else MemoryKnowledgeView([])


class LimitsBeforeAccess(MemoryKnowledgeBase):
    def for_user(self, user: str | None) -> MemoryKnowledgeView:
        crowd = [each for each in self._records.values() if each.namespace == "personal"]
        return super().for_user(user) if len(crowd) < 20 else MemoryKnowledgeView(crowd[:20])


class SeenThrough(MemoryKnowledgeBase):
    """A correct knowledge base with a broken view."""

    def __init__(self, view: type[Broken], records: Sequence[Record]) -> None:
        super().__init__(records)
        self._view = view

    def for_user(self, user: str | None) -> MemoryKnowledgeView:
        return self._view(super().for_user(user)._visible)


BROKEN: list[tuple[type[MemoryKnowledgeBase | Broken], str]] = [
    (StrangersFirst, "test_best_match_comes_first"),
    (ScoresBeyondOne, "test_scores_are_sorted_between_one_and_zero"),
    (ForgetsMetadata, "test_results_contain_the_whole_record"),
    (OverTheLimit, "test_limit_is_respected"),
    (Twice, "test_each_record_is_found_once"),
    (ShowsTheBeginning, "test_snippet_shows_the_matching_passage"),
    (Highlights, "test_snippets_are_plain_text"),
    (AlwaysSnippets, "test_snippets_can_be_turned_off"),
    (OneNamespace, "test_no_match_returns_an_empty_list"),
    (CertainOfEverything, "test_unrelated_query_scores_low"),
    (OneNamespace, "test_namespaces_are_separate"),
    (IgnoresTypes, "test_type_filter_matches_exactly"),
    (AnyTag, "test_all_tags_must_match"),
    (LeavesOutTheEnds, "test_date_range_includes_both_ends"),
    (ComparesDigits, "test_date_range_is_independent_of_the_zone"),
    (DatesWhatHasNoDate, "test_record_without_a_date_matches_no_range"),
    (FiltersLate, "test_filters_apply_before_the_limit"),
    (IgnoresTypes, "test_filters_are_combined"),
    (HidesTheOwners, "test_owner_finds_personal_records"),
    (NamesWithoutCase, "test_search_hides_personal_records_of_others"),
    (TellsEverybody, "test_get_hides_personal_records_of_others"),
    (OnlyForUsersWithAName, "test_studio_records_are_visible_to_everyone"),
    (LimitsBeforeAccess, "test_hidden_records_do_not_use_up_the_limit"),
    (QueryLanguage, "test_unusual_queries_never_fail"),
    (PhrasesAreLiteral, "test_query_syntax_is_read_as_words"),
    (OnlyAscii, "test_other_scripts_and_accents_are_found"),
    (ByIdOrder, "test_get_keeps_the_requested_order"),
    (FailsOnUnknown, "test_get_omits_unknown_ids"),
    (GivesPassages, "test_get_returns_long_records_whole"),
]


def creator(
    broken: type[MemoryKnowledgeBase | Broken],
) -> Callable[[Path, Sequence[Record]], Awaitable[KnowledgeBase]]:
    async def create(folder: Path, records: Sequence[Record]) -> KnowledgeBase:
        if issubclass(broken, MemoryKnowledgeBase):
            return broken(records)
        return SeenThrough(broken, records)

    return create


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_broken_knowledge_base_fails(
    broken: type[MemoryKnowledgeBase | Broken], test: str, tmp_path: Path
) -> None:
    with pytest.raises((pytest.fail.Exception, KeyError)):
        getattr(TestMemoryKnowledgeBase(), test)(KnowledgeHarness(creator(broken), tmp_path))


def test_every_contract_test_finds_a_fault() -> None:
    proven = {test for _, test in BROKEN}
    assert set(TESTS) - proven <= {"test_tags_may_contain_any_characters"}


def test_contract_test_cannot_be_dropped_silently() -> None:
    good = {"create_knowledge_base": TestMemoryKnowledgeBase.create_knowledge_base}
    for name in TESTS:
        with pytest.raises(TypeError, match=f"replaces the contract test {name}"):
            type("TestMine", (KnowledgeContractTests,), {**good, name: None})
    with pytest.raises(TypeError, match="replaces harness, which drives"):
        type("TestMine", (KnowledgeContractTests,), {**good, "harness": None})
    with pytest.raises(TypeError, match="sets __test__"):
        type("TestMine", (KnowledgeContractTests,), {**good, "__test__": False})
    with pytest.raises(TypeError, match="has __init__"):
        type("TestMine", (KnowledgeContractTests,), {**good, "__init__": lambda self: None})
    with pytest.raises(TypeError, match="define `async def create_knowledge_base"):
        type("TestMine", (KnowledgeContractTests,), {})
    with pytest.raises(TypeError, match="did you mean test_limit_is_respected"):
        type("TestMine", (KnowledgeContractTests,), {**good, "waived": {"test_limit_is_respecte": "why"}})
    with pytest.raises(TypeError, match="without a reason"):
        type("TestMine", (KnowledgeContractTests,), {**good, "waived": {"test_limit_is_respected": ""}})


def test_every_contract_test_has_a_docstring() -> None:
    assert len(TESTS) == len(set(TESTS))
    assert all(getattr(KnowledgeContractTests, name).__doc__ for name in TESTS)


def test_score_in_memory_is_the_share_of_the_query_words() -> None:
    async def score(query: str) -> float:
        found = await MemoryKnowledgeBase(RECORDS).for_user("ann").search(query)
        return found[0].score

    assert asyncio.run(score("lighthouse restoration")) == 1
    assert asyncio.run(score("lighthouse zeppelin")) == 0.5
    assert asyncio.run(score("museum")) == 0.8
