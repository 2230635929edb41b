"""Tests of search: results, snippets, filters and unusual queries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta, timezone

from jackfield_capability_types.knowledge import Evidence, Filters, Record

from jackfield_testkit.knowledge.harness import (
    BREAD,
    FERRY,
    LIGHTHOUSE,
    RECORDS,
    VACATION,
    KnowledgeHarness,
    async_test,
    day,
)
from jackfield_testkit.suite import expect, expect_equal, fail_test

_MARKUP = re.compile(r"</?[a-z][^<>]*>|\*\*|```", re.IGNORECASE)
_LONG_TEXT = " ".join(
    f"Section {number} describes routine paperwork of the office and its forms." for number in range(200)
)
_ALL = "lighthouse ferry vacation bread coast staff"
"""A query that matches every record."""
_UNUSUAL_QUERIES = (
    "?",
    "...",
    "AND",
    "OR NOT",
    "NEAR(",
    '"',
    '"unclosed phrase',
    "( [ {",
    ") ] }",
    "* ~ ^ \\ / : + - ! && || < >",
    "title:lighthouse^2 AND (text:museum~1 OR *)",
    "[2020 TO *]",
    "'; DROP TABLE records; --",
    "%s %d {0} ${x}",
    "<b>lighthouse</b>",
    "😀 🚢",
    "東京タワーはどこですか",
    "أين المنارة",
    "e\u0301\u200d\u202e",
    "\x00\x07",
    "   lighthouse   \t\n",
    "a" * 200,
    "lighthouse " * 18,
    "( " * 100,
)


class SearchTests:
    """`search` without filters."""

    @async_test
    async def test_best_match_comes_first(self, harness: KnowledgeHarness) -> None:
        """The best match comes first, by title and by text."""
        questions = {
            "lighthouse restoration": LIGHTHOUSE,
            "electric ferry timetable": FERRY,
            "vacation": VACATION,
            "flour water salt dough": BREAD,
        }
        async with harness.view(*RECORDS) as view:
            for query, expected in questions.items():
                found = await view.search(query)
                expect(found, f"search({query!r}) found nothing")
                expect_equal(found[0].record.id, expected.id, f"the first record found by search({query!r})")

    @async_test
    async def test_scores_are_sorted_between_one_and_zero(self, harness: KnowledgeHarness) -> None:
        """Scores are between 0 and 1 and do not increase from one result to the next."""
        async with harness.view(*RECORDS) as view:
            for query in ("coast lighthouse museum ferry", "staff portal", "bread"):
                scores = [each.score for each in await view.search(query, limit=10)]
                expect(all(0 <= score <= 1 for score in scores), f"scores are not between 0 and 1: {scores}")
                expect(scores == sorted(scores, reverse=True), f"scores are not sorted: {scores}")

    @async_test
    async def test_results_contain_the_whole_record(self, harness: KnowledgeHarness) -> None:
        """A result contains every field of the record, dates with their zone, and the metadata."""
        async with harness.view(*RECORDS) as view:
            for expected in (LIGHTHOUSE, BREAD):
                found = await view.search(expected.title)
                expect_equal(found[0].record, expected, "the record of the result")

    @async_test
    async def test_limit_is_respected(self, harness: KnowledgeHarness) -> None:
        """A search returns the best results, up to the limit."""
        many = [
            Record(f"doc:{number}", f"Harbour log {number}", "The harbour log of one day.")
            for number in range(30)
        ]
        async with harness.view(*many) as view:
            for limit in (1, 3, 10, 25):
                found = await view.search("harbour log", limit=limit)
                expect_equal(
                    len(found),
                    limit,
                    f"the number of results of search(limit={limit}) in 30 matching records",
                )

    @async_test
    async def test_each_record_is_found_once(self, harness: KnowledgeHarness) -> None:
        """A long record that matches in many places is one result."""
        long = Record("doc:long", "Lighthouse lore", "The lighthouse keeper lit the lighthouse lamp. " * 400)
        async with harness.view(long, *RECORDS) as view:
            ids = [each.record.id for each in await view.search("lighthouse keeper lamp", limit=10)]
            expect(len(ids) == len(set(ids)), f"a record was found twice: {ids}")
            expect("doc:long" in ids, "a long matching record was not found")

    @async_test
    async def test_snippet_shows_the_matching_passage(self, harness: KnowledgeHarness) -> None:
        """The snippet is the matching part of a record of any length."""
        half = len(_LONG_TEXT) // 2
        needle = "The spare key to the boathouse hangs behind the barometer."
        long = Record(
            "doc:handbook", "Office handbook", f"{_LONG_TEXT[:half]}\n\n{needle}\n\n{_LONG_TEXT[half:]}"
        )
        async with harness.view(long, *RECORDS) as view:
            found = await view.search("spare key boathouse barometer")
            expect(found and found[0].record.id == "doc:handbook", "the record with the passage is not first")
            snippet = found[0].snippet or ""
            for word in ("key", "boathouse", "barometer"):
                expect(word in snippet, f"the snippet does not show {word!r}: {snippet!r:.300}")
            expect(len(snippet) <= 1000, f"the snippet has {len(snippet)} characters, more than 1000")

    @async_test
    async def test_snippets_are_plain_text(self, harness: KnowledgeHarness) -> None:
        """Snippets contain no tags or highlighting, because they are read aloud."""
        async with harness.view(*RECORDS) as view:
            found = await view.search("lighthouse lantern museum", limit=10)
            for each in found:
                marked = _MARKUP.search(each.snippet or "")
                expect(
                    marked is None, f"the snippet of {each.record.id} contains markup: {each.snippet!r:.300}"
                )

    @async_test
    async def test_snippets_can_be_turned_off(self, harness: KnowledgeHarness) -> None:
        """With `snippets=False` the same records are returned without snippets."""
        async with harness.view(*RECORDS) as view:
            found = await view.search("lighthouse", snippets=False)
            expect_equal([each.snippet for each in found], [None] * len(found), "the snippets")
            expect(
                found and found[0].record.id == LIGHTHOUSE.id, "without snippets a different record is first"
            )

    @async_test
    async def test_no_match_returns_an_empty_list(self, harness: KnowledgeHarness) -> None:
        """An empty knowledge base and an empty namespace return an empty list."""
        async with harness.view() as view:
            expect_equal(list(await view.search("lighthouse")), [], "the results in an empty knowledge base")
        async with KnowledgeHarness(harness.create, harness.folder / "more").view(*RECORDS) as view:
            expect_equal(
                list(await view.search("lighthouse", namespace="public")),
                [],
                "the results in an empty namespace",
            )

    @async_test
    async def test_unrelated_query_scores_low(self, harness: KnowledgeHarness) -> None:
        """A query that is unrelated to all records finds nothing, or results with low scores."""
        async with harness.view(*RECORDS) as view:
            for each in await view.search("zygomorphic quaternion xylem", limit=10):
                expect(each.score < 0.5, f"{each.record.id} scores {each.score} for an unrelated query")

    @async_test
    async def test_namespaces_are_separate(self, harness: KnowledgeHarness) -> None:
        """A search returns records of its namespace only."""
        public = replace(FERRY, id="doc:public-ferry", namespace="public")
        async with harness.view(public, *RECORDS) as view:
            for namespace, expected in (("studio", FERRY.id), ("public", public.id)):
                found = await view.search("electric ferry timetable", namespace=namespace, limit=10)
                ids = {each.record.id for each in found}
                expect(expected in ids, f"{expected} was not found in {namespace}")
                spaces = {each.record.namespace for each in found}
                expect_equal(spaces, {namespace}, f"the namespaces of the results in {namespace}")


class FilterTests:
    """`filters` of a search."""

    @async_test
    async def test_type_filter_matches_exactly(self, harness: KnowledgeHarness) -> None:
        """A type filter returns records of that type only."""
        async with harness.view(*RECORDS) as view:
            for kind, expected in (
                ("project", {LIGHTHOUSE.id, FERRY.id}),
                ("process", {VACATION.id}),
                ("person", set()),
            ):
                found = await view.search(_ALL, filters=Filters(type=kind), limit=10)
                expect_equal(_ids(found), expected, f"the results for the type {kind!r}")

    @async_test
    async def test_all_tags_must_match(self, harness: KnowledgeHarness) -> None:
        """A record has to have all tags of the filter, each as a whole."""
        async with harness.view(*RECORDS) as view:
            for tags, expected in (
                (("coast",), {LIGHTHOUSE.id, FERRY.id}),
                (("coast", "transport"), {FERRY.id}),
                (("coast", "staff"), set()),
                (("coas",), set()),
            ):
                found = await view.search(_ALL, filters=Filters(tags=tags), limit=10)
                expect_equal(_ids(found), expected, f"the results for the tags {tags}")

    @async_test
    async def test_tags_may_contain_any_characters(self, harness: KnowledgeHarness) -> None:
        """Spaces, punctuation and other scripts in a tag match literally."""
        for number, tag in enumerate(("q1 2026", "c++", 'say "hi"', "día/año", "東京", "a:b")):
            tagged = Record(f"doc:tagged{number}", "Lighthouse memo", "About the lighthouse.", tags=(tag,))
            async with KnowledgeHarness(harness.create, harness.folder / str(number)).view(
                tagged, *RECORDS
            ) as view:
                found = await view.search("lighthouse", filters=Filters(tags=(tag,)), limit=10)
                expect_equal(_ids(found), {tagged.id}, f"the results for the tag {tag!r}")

    @async_test
    async def test_date_range_includes_both_ends(self, harness: KnowledgeHarness) -> None:
        """A record at the start or end of the range matches; one a millisecond away does not."""
        instant = timedelta(milliseconds=1)
        async with harness.view(*RECORDS) as view:
            for start, end, expected in (
                (day(10), day(14), {LIGHTHOUSE.id, FERRY.id, VACATION.id}),
                (day(10) + instant, day(14) - instant, {FERRY.id}),
                (day(12), None, {FERRY.id, VACATION.id}),
                (None, day(12), {LIGHTHOUSE.id, FERRY.id}),
                (day(20), day(30), set()),
            ):
                filters = Filters(updated_from=start, updated_until=end)
                found = await view.search(_ALL, filters=filters, limit=10)
                expect_equal(_ids(found), expected, f"the results from {start} until {end}")

    @async_test
    async def test_date_range_is_independent_of_the_zone(self, harness: KnowledgeHarness) -> None:
        """Dates are compared as instants, in any time zone."""
        tokyo = timezone(timedelta(hours=9))
        filters = Filters(updated_from=day(12).astimezone(tokyo), updated_until=day(12).astimezone(tokyo))
        async with harness.view(*RECORDS) as view:
            found = await view.search(_ALL, filters=filters, limit=10)
            expect_equal(_ids(found), {FERRY.id}, "the results for a range in another zone")

    @async_test
    async def test_record_without_a_date_matches_no_range(self, harness: KnowledgeHarness) -> None:
        """A record without a date is found without a range filter, and never with one."""
        async with harness.view(*RECORDS) as view:
            found = await view.search("bread", limit=10)
            expect_equal(found[0].record.id if found else None, BREAD.id, "the first record without a range")
            found = await view.search("bread", filters=Filters(updated_from=day(1)), limit=10)
            expect_equal(BREAD.id in _ids(found), False, "whether a record without a date matches a range")

    @async_test
    async def test_filters_apply_before_the_limit(self, harness: KnowledgeHarness) -> None:
        """A record that matches the filter is found even if many others match the query better."""
        better = [
            Record(f"doc:{number}", "Lighthouse lighthouse", "Lighthouse, lighthouse.")
            for number in range(60)
        ]
        async with harness.view(*better, LIGHTHOUSE) as view:
            found = await view.search("lighthouse", filters=Filters(type="project"), limit=1)
            expect_equal(_ids(found), {LIGHTHOUSE.id}, "the results for one project among 60 documents")

    @async_test
    async def test_filters_are_combined(self, harness: KnowledgeHarness) -> None:
        """Type, tags and range all have to match."""
        async with harness.view(*RECORDS) as view:
            both = Filters(type="project", tags=("coast",), updated_from=day(11))
            expect_equal(
                _ids(await view.search(_ALL, filters=both, limit=10)), {FERRY.id}, "all filters together"
            )
            contradiction = Filters(type="process", tags=("coast",))
            expect_equal(
                _ids(await view.search(_ALL, filters=contradiction, limit=10)), set(), "contradicting filters"
            )


def _ids(found: Sequence[Evidence]) -> set[str]:
    return {each.record.id for each in found}


class QueryTests:
    """Queries as people and models write them."""

    @async_test
    async def test_unusual_queries_never_fail(self, harness: KnowledgeHarness) -> None:
        """Punctuation, query syntax, emoji, other scripts and long queries never raise."""
        async with harness.view(*RECORDS) as view:
            for query in _UNUSUAL_QUERIES:
                try:
                    found = await view.search(query)
                except Exception as error:  # noqa: BLE001 - the test reports the query
                    fail_test(f"search({query!r:.80}) raised {type(error).__name__}: {error}")
                scores = [each.score for each in found]
                expect(all(0 <= score <= 1 for score in scores), f"search({query!r:.80}) scored {scores}")

    @async_test
    async def test_query_syntax_is_read_as_words(self, harness: KnowledgeHarness) -> None:
        """Query syntax around words does not affect the result."""
        async with harness.view(*RECORDS) as view:
            for query in (
                '"lighthouse restoration',
                "lighthouse AND (restoration",
                "lighthouse: restoration?!",
                "(lighthouse) ~restoration*",
                "LIGHTHOUSE Restoration",
                "-lighthouse +restoration",
                "what about the lighthouse restoration?",
            ):
                found = await view.search(query)
                expect(found, f"search({query!r}) found nothing")
                expect_equal(
                    found[0].record.id, LIGHTHOUSE.id, f"the first record found by search({query!r})"
                )

    @async_test
    async def test_other_scripts_and_accents_are_found(self, harness: KnowledgeHarness) -> None:
        """Words in other scripts and words with accents are found."""
        records = (
            Record("doc:kyrill", "Маяк на мысе", "Старый маяк построили моряки."),
            Record("doc:greek", "Παλιός φάρος", "Παλιός φάρος στο λιμάνι."),
            Record("doc:french", "Café du port", "Le café près de la jetée ouvre à huit heures."),
        )
        async with harness.view(*records, *RECORDS) as view:
            for query, expected in (("маяк", "doc:kyrill"), ("φάρος", "doc:greek"), ("café", "doc:french")):
                found = await view.search(query)
                expect_equal(
                    found[0].record.id if found else None, expected, f"the first found by search({query!r})"
                )
