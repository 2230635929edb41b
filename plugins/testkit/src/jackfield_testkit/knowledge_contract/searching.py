"""What a search finds, in which order, and how it shows it."""

from __future__ import annotations

import re
from dataclasses import replace

from jackfield_capability_types.knowledge import Record

from jackfield_testkit.knowledge_contract.shelf import (
    BREAD,
    FERRY,
    LIGHTHOUSE,
    STUDIO,
    VACATION,
    Shelf,
    on_a_loop,
)
from jackfield_testkit.store_contract.verdict import holds, same

_MARKUP = re.compile(r"</?[a-z][^<>]*>|\*\*|```", re.IGNORECASE)
_LONG_TEXT = " ".join(
    f"Section {number} describes routine paperwork of the office and its forms." for number in range(200)
)


class SearchTests:
    """What `search` promises whatever the filters."""

    @on_a_loop
    async def test_the_best_comes_first(self, shelf: Shelf) -> None:
        """What the query names is found first, by its title and by its text."""
        questions = {
            "lighthouse restoration": LIGHTHOUSE,
            "electric ferry timetable": FERRY,
            "vacation": VACATION,
            "flour water salt dough": BREAD,
        }
        async with shelf.view(*STUDIO) as view:
            for query, expected in questions.items():
                found = await view.search(query)
                holds(found, f"search({query!r}) found nothing")
                same(found[0].record.id, expected.id, f"the first record found by search({query!r})")

    @on_a_loop
    async def test_scores_fall_from_one_to_zero(self, shelf: Shelf) -> None:
        """Scores lie between 0 and 1 and do not rise from one result to the next."""
        async with shelf.view(*STUDIO) as view:
            for query in ("coast lighthouse museum ferry", "staff portal", "bread"):
                scores = [each.score for each in await view.search(query, limit=10)]
                holds(all(0 <= score <= 1 for score in scores), f"scores outside 0 to 1: {scores}")
                holds(scores == sorted(scores, reverse=True), f"scores rise again: {scores}")

    @on_a_loop
    async def test_the_record_comes_whole(self, shelf: Shelf) -> None:
        """What was put in comes out: every field, dates with their zone, metadata as it was."""
        async with shelf.view(*STUDIO) as view:
            for expected in (LIGHTHOUSE, BREAD):
                found = await view.search(expected.title)
                same(found[0].record, expected, "the record of the evidence")

    @on_a_loop
    async def test_the_limit_holds(self, shelf: Shelf) -> None:
        """No more results than asked for, and the best of them."""
        many = [
            Record(f"doc:{number}", f"Harbour log {number}", "The harbour log of one day.")
            for number in range(30)
        ]
        async with shelf.view(*many) as view:
            for limit in (1, 3, 10, 25):
                found = await view.search("harbour log", limit=limit)
                same(len(found), limit, f"how many search(limit={limit}) found of 30 that fit")

    @on_a_loop
    async def test_each_record_comes_once(self, shelf: Shelf) -> None:
        """A long record that fits in many places is one result, not many."""
        long = Record("doc:long", "Lighthouse lore", "The lighthouse keeper lit the lighthouse lamp. " * 400)
        async with shelf.view(long, *STUDIO) as view:
            ids = [each.record.id for each in await view.search("lighthouse keeper lamp", limit=10)]
            holds(len(ids) == len(set(ids)), f"a record was found twice: {ids}")
            holds("doc:long" in ids, "a long record that fits was not found")

    @on_a_loop
    async def test_the_snippet_shows_the_matching_passage(self, shelf: Shelf) -> None:
        """However long the record, the snippet is the part of it that answers."""
        half = len(_LONG_TEXT) // 2
        needle = "The spare key to the boathouse hangs behind the barometer."
        long = Record(
            "doc:handbook", "Office handbook", f"{_LONG_TEXT[:half]}\n\n{needle}\n\n{_LONG_TEXT[half:]}"
        )
        async with shelf.view(long, *STUDIO) as view:
            found = await view.search("spare key boathouse barometer")
            holds(found and found[0].record.id == "doc:handbook", "the record with the passage is not first")
            snippet = found[0].snippet or ""
            for word in ("key", "boathouse", "barometer"):
                holds(word in snippet, f"the snippet does not show {word!r}: {snippet!r:.300}")
            holds(len(snippet) <= 1000, f"the snippet is {len(snippet)} characters long, at most 1000 help")

    @on_a_loop
    async def test_snippets_are_plain_text(self, shelf: Shelf) -> None:
        """No tags and no marks around what matched: a snippet is read aloud."""
        async with shelf.view(*STUDIO) as view:
            found = await view.search("lighthouse lantern museum", limit=10)
            for each in found:
                marked = _MARKUP.search(each.snippet or "")
                holds(marked is None, f"the snippet of {each.record.id} holds markup: {each.snippet!r:.300}")

    @on_a_loop
    async def test_without_snippets_there_are_none(self, shelf: Shelf) -> None:
        """Who does not want snippets gets the same records without them."""
        async with shelf.view(*STUDIO) as view:
            found = await view.search("lighthouse", snippets=False)
            same([each.snippet for each in found], [None] * len(found), "snippets that were not asked for")
            holds(found and found[0].record.id == LIGHTHOUSE.id, "without snippets another record is first")

    @on_a_loop
    async def test_nothing_found_is_an_empty_answer(self, shelf: Shelf) -> None:
        """An empty knowledge base and an empty namespace answer with nothing, and do not fail."""
        async with shelf.view() as view:
            same(list(await view.search("lighthouse")), [], "what an empty knowledge base finds")
        async with Shelf(shelf.fill, shelf.place / "more").view(*STUDIO) as view:
            same(list(await view.search("lighthouse", namespace="public")), [], "the public namespace")

    @on_a_loop
    async def test_what_hardly_fits_scores_low(self, shelf: Shelf) -> None:
        """A query that has nothing to do with any record finds nothing, or says how little it fits."""
        async with shelf.view(*STUDIO) as view:
            for each in await view.search("zygomorphic quaternion xylem", limit=10):
                holds(
                    each.score < 0.5, f"{each.record.id} scores {each.score} for a query about other things"
                )

    @on_a_loop
    async def test_namespaces_are_apart(self, shelf: Shelf) -> None:
        """A search looks into the namespace it names and into no other."""
        public = replace(FERRY, id="doc:public-ferry", namespace="public")
        async with shelf.view(public, *STUDIO) as view:
            for namespace, expected in (("studio", FERRY.id), ("public", public.id)):
                found = await view.search("electric ferry timetable", namespace=namespace, limit=10)
                ids = {each.record.id for each in found}
                holds(expected in ids, f"{expected} was not found in {namespace}")
                spaces = {each.record.namespace for each in found}
                same(spaces, {namespace}, f"the namespaces of what was found in {namespace}")
