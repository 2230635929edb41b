"""Queries as people and models write them."""

from __future__ import annotations

from jackfield_capability_types.knowledge import Record

from jackfield_testkit.knowledge_contract.shelf import LIGHTHOUSE, STUDIO, Shelf, on_a_loop
from jackfield_testkit.store_contract.verdict import give_up, holds, same

STRANGE = (
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


class QueryTests:
    """A query is words, whatever stands in it."""

    @on_a_loop
    async def test_strange_queries_are_answered(self, shelf: Shelf) -> None:
        """Punctuation, query syntax, emoji, other scripts, 200 characters: an answer, never an exception."""
        async with shelf.view(*STUDIO) as view:
            for query in STRANGE:
                try:
                    found = await view.search(query)
                except Exception as error:  # noqa: BLE001 - whatever it is, the test names the query
                    give_up(f"search({query!r:.80}) raised {type(error).__name__}: {error}")
                scores = [each.score for each in found]
                holds(all(0 <= score <= 1 for score in scores), f"search({query!r:.80}) scored {scores}")

    @on_a_loop
    async def test_syntax_around_words_does_not_hide_them(self, shelf: Shelf) -> None:
        """What looks like a query language is read as the words in it."""
        async with shelf.view(*STUDIO) as view:
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
                holds(found, f"search({query!r}) found nothing")
                same(found[0].record.id, LIGHTHOUSE.id, f"the first record found by search({query!r})")

    @on_a_loop
    async def test_other_scripts_are_found(self, shelf: Shelf) -> None:
        """Words of other alphabets, and words with accents, find the records that hold them."""
        records = (
            Record("doc:kyrill", "Маяк на мысе", "Старый маяк построили моряки."),
            Record("doc:greek", "Παλιός φάρος", "Παλιός φάρος στο λιμάνι."),
            Record("doc:french", "Café du port", "Le café près de la jetée ouvre à huit heures."),
        )
        async with shelf.view(*records, *STUDIO) as view:
            for query, expected in (("маяк", "doc:kyrill"), ("φάρος", "doc:greek"), ("café", "doc:french")):
                found = await view.search(query)
                same(found[0].record.id if found else None, expected, f"the first found by search({query!r})")
