"""The base class that the author of a knowledge base subclasses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from jackfield_capability_types.knowledge import KnowledgeBase, Record

from jackfield_testkit.knowledge_contract.access import AccessTests
from jackfield_testkit.knowledge_contract.filtering import FilterTests
from jackfield_testkit.knowledge_contract.getting import GetTests
from jackfield_testkit.knowledge_contract.queries import QueryTests
from jackfield_testkit.knowledge_contract.searching import SearchTests
from jackfield_testkit.knowledge_contract.shelf import Shelf
from jackfield_testkit.sealing import SealedTests, check_defined

_SIGNATURE = "async def filled(self, place, records)"


class KnowledgeContractTests(
    SealedTests, SearchTests, FilterTests, AccessTests, QueryTests, GetTests, suite=True
):
    """Subclass it, say how a knowledge base is filled: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class Ours(KnowledgeContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    decides = frozenset({"filled", "waived"})

    @classmethod
    def check_statements(cls) -> None:
        """Refuse a class that does not say what it tests."""
        check_defined(cls, "filled", _SIGNATURE)

    async def filled(self, place: Path, records: Sequence[Record]) -> KnowledgeBase:
        """A knowledge base that holds these records and nothing else; `place` is an empty folder for it."""
        raise NotImplementedError(f"{type(self).__name__} defines `{_SIGNATURE}`")

    @pytest.fixture
    def shelf(self, tmp_path: Path) -> Shelf:
        """What a standard test fills a knowledge base with."""
        return Shelf(self.filled, tmp_path)
