"""The contract suite for the capability `kb`, with the tests of access and of `get`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from jackfield_capability_types.knowledge import KnowledgeBase, Record

from jackfield_testkit.context import SessionStub
from jackfield_testkit.knowledge.harness import (
    BREAD,
    FERRY,
    LIGHTHOUSE,
    RECORDS,
    KnowledgeHarness,
    async_test,
    personal_note,
)
from jackfield_testkit.knowledge.search import FilterTests, QueryTests, SearchTests
from jackfield_testkit.suite import ContractTests, expect_equal, require_override

_SIGNATURE = "async def create_knowledge_base(self, folder, records)"
_ANNS = personal_note("ann", "salary", "What Ann earns and wants to earn next year.")
_BENS = personal_note("ben", "doctor", "Ben sees the doctor about his knee on Friday.")
_PERSONAL = (_ANNS, _BENS)
_LONG = Record("doc:long", "A long one", "The tide comes in and goes out again.\n" * 3000)


class KnowledgeContractTests(ContractTests, SearchTests, FilterTests, QueryTests, suite=True):
    """Subclass it and define `create_knowledge_base` to run the contract tests of the capability `kb`.

    A contract test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report shows the
    reason. `class Ours(KnowledgeContractTests, abstract=True)` makes a base class that does not run itself.
    """

    overridable = frozenset({"create_knowledge_base", "waived"})

    @classmethod
    def check_settings(cls) -> None:
        """Raise `TypeError` for a class that does not define `create_knowledge_base`."""
        require_override(cls, "create_knowledge_base", _SIGNATURE)

    async def create_knowledge_base(self, folder: Path, records: Sequence[Record]) -> KnowledgeBase:
        """Create a knowledge base with these records only; `folder` is empty."""
        raise NotImplementedError(f"{type(self).__name__} has to define `{_SIGNATURE}`")

    @pytest.fixture
    def harness(self, tmp_path: Path) -> KnowledgeHarness:
        """Creates knowledge bases for a contract test."""
        return KnowledgeHarness(self.create_knowledge_base, tmp_path)

    # Access

    @async_test
    async def test_owner_finds_personal_records(self, harness: KnowledgeHarness) -> None:
        """The owner finds a personal record by search and gets it by id."""
        async with harness.open(*RECORDS, *_PERSONAL) as base:
            for user, query, own in (("ann", "salary", _ANNS), ("ben", "doctor", _BENS)):
                view = base.for_session(SessionStub(user))
                found = await view.search(query, namespace="personal", limit=10)
                expect_equal([each.record.id for each in found][:1], [own.id], f"what {user} finds")
                expect_equal([each.id for each in await view.get([own.id])], [own.id], f"what {user} gets")

    @async_test
    async def test_search_hides_personal_records_of_others(self, harness: KnowledgeHarness) -> None:
        """Other users, anonymous users and users with a similar name do not find a personal record."""
        async with harness.open(*RECORDS, *_PERSONAL) as base:
            for user in ("ben", "cleo", None, "", "Ann", "ann ", "an", "ann OR ben", "*", "%"):
                for namespace in ("personal", "studio", "public"):
                    found = await _find(base, user, namespace)
                    expect_equal(
                        _ANNS.id in found, False, f"whether {user!r} finds Ann's record in {namespace}"
                    )

    @async_test
    async def test_get_hides_personal_records_of_others(self, harness: KnowledgeHarness) -> None:
        """By id, a personal record of another user does not exist."""
        async with harness.open(*RECORDS, *_PERSONAL) as base:
            for user in ("ben", "cleo", None, "", "Ann"):
                view = base.for_session(SessionStub(user))
                got = await view.get([_ANNS.id, LIGHTHOUSE.id, "doc:unknown"])
                expect_equal([each.id for each in got], [LIGHTHOUSE.id], f"what {user!r} gets by id")

    @async_test
    async def test_studio_records_are_visible_to_everyone(self, harness: KnowledgeHarness) -> None:
        """Everyone finds records of the studio namespace."""
        async with harness.open(*RECORDS, *_PERSONAL) as base:
            for user in ("ann", "cleo", None):
                found = await _find(base, user, "studio", "lighthouse restoration")
                expect_equal(LIGHTHOUSE.id in found, True, f"whether {user!r} finds a record of the studio")

    @async_test
    async def test_hidden_records_do_not_use_up_the_limit(self, harness: KnowledgeHarness) -> None:
        """A user finds their record even if many hidden records match better."""
        others = [
            personal_note(f"user{number}", f"diary{number}", "diary diary diary") for number in range(60)
        ]
        mine = personal_note("ann", "holiday", "In my diary there is a holiday.")
        async with harness.open(*others, mine) as base:
            view = base.for_session(SessionStub("ann"))
            found = await view.search("diary", namespace="personal", limit=1)
            expect_equal(
                [each.record.id for each in found], [mine.id], "what Ann finds among 60 hidden records"
            )

    # Records by id

    @async_test
    async def test_get_keeps_the_requested_order(self, harness: KnowledgeHarness) -> None:
        """`get` returns whole records in the requested order."""
        async with harness.view(*RECORDS) as view:
            wanted = [BREAD, LIGHTHOUSE, FERRY]
            expect_equal(list(await view.get([each.id for each in wanted])), wanted, "records by id")

    @async_test
    async def test_get_omits_unknown_ids(self, harness: KnowledgeHarness) -> None:
        """`get` omits unknown ids and keeps the order of the others."""
        async with harness.view(*RECORDS) as view:
            ids = ["doc:nowhere", FERRY.id, "", "x" * 200, "'; --", "PROJECT:FERRY", LIGHTHOUSE.id]
            expect_equal(
                [each.id for each in await view.get(ids)], [FERRY.id, LIGHTHOUSE.id], "the known ids"
            )
            expect_equal(list(await view.get([])), [], "get() without ids")
            expect_equal(list(await view.get(["doc:nowhere"])), [], "get() of an unknown id")

    @async_test
    async def test_get_returns_long_records_whole(self, harness: KnowledgeHarness) -> None:
        """`get` returns a long record whole, however it is split for search."""
        async with harness.view(_LONG, *RECORDS) as view:
            got = await view.get([_LONG.id])
            expect_equal([each.text for each in got], [_LONG.text], "the text of a long record")


async def _find(
    base: KnowledgeBase, user: str | None, namespace: str, query: str = "Ann salary notes"
) -> set[str]:
    found = await base.for_session(SessionStub(user)).search(query, namespace=namespace, limit=10)
    return {each.record.id for each in found}
