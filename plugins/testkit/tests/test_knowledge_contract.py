"""The suite of knowledge bases: the one in memory passes it, broken ones do not."""

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
from jackfield_testkit.knowledge_contract.memory import MemoryKnowledgeView
from jackfield_testkit.knowledge_contract.shelf import LIGHTHOUSE, STUDIO, Shelf
from jackfield_testkit.sealing import suite_tests

TESTS = suite_tests(KnowledgeContractTests)


class TestMemoryKnowledgeBase(KnowledgeContractTests):
    async def filled(self, place: Path, records: Sequence[Record]) -> KnowledgeBase:
        return MemoryKnowledgeBase(records)


# Every one of these breaks one promise, and the standard test beside it has to say so.


class Broken(MemoryKnowledgeView):
    """Changes what is found, or how it is asked for."""

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
        spare = [each for each in STUDIO if each.id not in {one.record.id for one in found}]
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
    """Asks for other filters than it was given."""

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
    """Searches with access, and gets without."""

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
    """A good one behind a broken view."""

    def __init__(self, view: type[Broken], records: Sequence[Record]) -> None:
        super().__init__(records)
        self._view = view

    def for_user(self, user: str | None) -> MemoryKnowledgeView:
        return self._view(super().for_user(user)._visible)


BROKEN: list[tuple[type[MemoryKnowledgeBase | Broken], str]] = [
    (StrangersFirst, "test_the_best_comes_first"),
    (ScoresBeyondOne, "test_scores_fall_from_one_to_zero"),
    (ForgetsMetadata, "test_the_record_comes_whole"),
    (OverTheLimit, "test_the_limit_holds"),
    (Twice, "test_each_record_comes_once"),
    (ShowsTheBeginning, "test_the_snippet_shows_the_matching_passage"),
    (Highlights, "test_snippets_are_plain_text"),
    (AlwaysSnippets, "test_without_snippets_there_are_none"),
    (OneNamespace, "test_nothing_found_is_an_empty_answer"),
    (CertainOfEverything, "test_what_hardly_fits_scores_low"),
    (OneNamespace, "test_namespaces_are_apart"),
    (IgnoresTypes, "test_a_type_is_the_only_type"),
    (AnyTag, "test_all_tags_must_be_there"),
    (LeavesOutTheEnds, "test_both_ends_belong_to_a_range"),
    (ComparesDigits, "test_a_range_is_the_same_in_every_zone"),
    (DatesWhatHasNoDate, "test_without_a_date_no_range_fits"),
    (FiltersLate, "test_filters_apply_before_the_limit"),
    (IgnoresTypes, "test_everything_stated_must_hold"),
    (HidesTheOwners, "test_a_personal_record_is_for_its_owner"),
    (NamesWithoutCase, "test_nobody_finds_what_is_not_his"),
    (TellsEverybody, "test_get_reveals_nothing_either"),
    (OnlyForUsersWithAName, "test_the_studio_is_for_everybody"),
    (LimitsBeforeAccess, "test_other_peoples_records_do_not_take_up_the_limit"),
    (QueryLanguage, "test_strange_queries_are_answered"),
    (PhrasesAreLiteral, "test_syntax_around_words_does_not_hide_them"),
    (OnlyAscii, "test_other_scripts_are_found"),
    (ByIdOrder, "test_the_order_asked_is_the_order_given"),
    (FailsOnUnknown, "test_what_is_missing_is_left_out"),
    (GivesPassages, "test_long_records_come_whole"),
]


def filler(
    broken: type[MemoryKnowledgeBase | Broken],
) -> Callable[[Path, Sequence[Record]], Awaitable[KnowledgeBase]]:
    async def fill(place: Path, records: Sequence[Record]) -> KnowledgeBase:
        if issubclass(broken, MemoryKnowledgeBase):
            return broken(records)
        return SeenThrough(broken, records)

    return fill


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_a_broken_knowledge_base_is_found_out(
    broken: type[MemoryKnowledgeBase | Broken], test: str, tmp_path: Path
) -> None:
    with pytest.raises((pytest.fail.Exception, KeyError)):
        getattr(TestMemoryKnowledgeBase(), test)(Shelf(filler(broken), tmp_path))


def test_every_standard_test_is_proven_by_a_broken_one() -> None:
    proven = {test for _, test in BROKEN}
    assert set(TESTS) - proven <= {"test_tags_of_any_kind"}


def test_a_standard_test_cannot_be_dropped_silently() -> None:
    good = {"filled": TestMemoryKnowledgeBase.filled}
    for name in TESTS:
        with pytest.raises(TypeError, match=f"replaces the standard test {name}"):
            type("TestMine", (KnowledgeContractTests,), {**good, name: None})
    with pytest.raises(TypeError, match="replaces shelf, which drives"):
        type("TestMine", (KnowledgeContractTests,), {**good, "shelf": None})
    with pytest.raises(TypeError, match="sets __test__"):
        type("TestMine", (KnowledgeContractTests,), {**good, "__test__": False})
    with pytest.raises(TypeError, match="has __init__"):
        type("TestMine", (KnowledgeContractTests,), {**good, "__init__": lambda self: None})
    with pytest.raises(TypeError, match="define `async def filled"):
        type("TestMine", (KnowledgeContractTests,), {})
    with pytest.raises(TypeError, match="did you mean test_the_limit_holds"):
        type("TestMine", (KnowledgeContractTests,), {**good, "waived": {"test_the_limit_hold": "why"}})
    with pytest.raises(TypeError, match="without a reason"):
        type("TestMine", (KnowledgeContractTests,), {**good, "waived": {"test_the_limit_holds": ""}})


def test_every_standard_test_says_what_it_is_for() -> None:
    assert len(TESTS) == len(set(TESTS))
    assert all(getattr(KnowledgeContractTests, name).__doc__ for name in TESTS)


def test_the_score_of_the_one_in_memory_is_the_share_of_the_words() -> None:
    async def score(query: str) -> float:
        found = await MemoryKnowledgeBase(STUDIO).for_user("ann").search(query)
        return found[0].score

    assert asyncio.run(score("lighthouse restoration")) == 1
    assert asyncio.run(score("lighthouse zeppelin")) == 0.5
    assert asyncio.run(score("museum")) == 0.8
