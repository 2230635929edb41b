"""The base class that the author of a knowledge base subclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from jackfield.capabilities.knowledge import KnowledgeBase, Record

from jackfield_testkit import capability_guard as guard
from jackfield_testkit.knowledge_contract.access import AccessTests
from jackfield_testkit.knowledge_contract.filtering import FilterTests
from jackfield_testkit.knowledge_contract.getting import GetTests
from jackfield_testkit.knowledge_contract.queries import QueryTests
from jackfield_testkit.knowledge_contract.searching import SearchTests
from jackfield_testkit.knowledge_contract.shelf import Shelf

DECIDES = frozenset({"filled", "waived"})
"""What a subclass decides; everything else in the suite is sealed."""

_SIGNATURE = "async def filled(self, place, records)"


class KnowledgeContractTests(SearchTests, FilterTests, AccessTests, QueryTests, GetTests):
    """Subclass it, say how a knowledge base is filled: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class Ours(KnowledgeContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    __test__: ClassVar[bool] = False

    waived: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Standard tests that cannot hold for this knowledge base, each with the reason."""

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__test__" not in vars(cls):
            cls.__test__ = not abstract
        guard.check_sealed(cls, KnowledgeContractTests, DECIDES)
        if not abstract:
            guard.check_statements(cls, KnowledgeContractTests, "filled", _SIGNATURE)

    async def filled(self, place: Path, records: Sequence[Record]) -> KnowledgeBase:
        """A knowledge base that holds these records and nothing else; `place` is an empty folder for it."""
        raise NotImplementedError(f"{type(self).__name__} defines `{_SIGNATURE}`")

    @pytest.fixture
    def shelf(self, request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
        """What a standard test fills a knowledge base with."""
        test = request.function.__name__
        if test in self.waived:
            pytest.skip(f"{type(self).__name__} waives {test}: {self.waived[test]}")
        return Shelf(self.filled, tmp_path)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:  # noqa: ARG002
        """Check once more, because an attribute can also be set after the class was made."""
        guard.check_sealed(type(self), KnowledgeContractTests, DECIDES)
        guard.check_statements(type(self), KnowledgeContractTests, "filled", _SIGNATURE)
