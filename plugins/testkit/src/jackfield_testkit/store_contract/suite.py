"""The base class that the author of a store subclasses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from jackfield.store import Store

from jackfield_testkit.store_contract import guard
from jackfield_testkit.store_contract.claims import ClaimTests
from jackfield_testkit.store_contract.crashes import CrashTests
from jackfield_testkit.store_contract.model import ModelTests
from jackfield_testkit.store_contract.processes import ProcessTests
from jackfield_testkit.store_contract.streams import StreamTests
from jackfield_testkit.store_contract.values import ValueTests
from jackfield_testkit.store_contract.world import World
from jackfield_testkit.tool_contract.guard import standard_tests

_SHARED_ONLY = frozenset(standard_tests(ProcessTests) + standard_tests(CrashTests))


class StoreContractTests(ValueTests, ClaimTests, StreamTests, ModelTests, ProcessTests, CrashTests):
    """Subclass it, say how the store is opened: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class OurStores(StoreContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    __test__: ClassVar[bool] = False

    opener: ClassVar[str] = ""
    """An import string, `"module:function"`: called with a place it returns a store, or awaits one."""

    shared: ClassVar[bool] = True
    """Whether stores that several processes open on one place are one store."""

    waived: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Standard tests that cannot hold for this store, each with the reason."""

    rounds: ClassVar[int] = 10
    """How often a process is killed in the tests that kill one."""

    examples: ClassVar[int] = 30
    """How many sequences of operations the store is compared with the model for."""

    seed: ClassVar[int] = 1
    """What the moments of the kills are drawn from."""

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__test__" not in vars(cls):
            cls.__test__ = not abstract
        guard.check_sealed(cls, StoreContractTests)
        if not abstract:
            guard.check_statements(cls, StoreContractTests)

    def place(self, tmp_path: Path) -> str:
        """Where a test's stores are opened: a new place every time."""
        return str(tmp_path / "store")

    def with_clock(self, place: str, clock: Callable[[], float]) -> Store | None:  # noqa: ARG002
        """A store that tells the time by a function; override it if there is a way to make one."""
        return None

    @pytest.fixture
    def world(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
        """The place, and who works there."""
        self._check_applicable(request.function.__name__)
        world = World(self.place(tmp_path), self.opener, self.with_clock)
        yield world
        world.close()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:  # noqa: ARG002
        """Check once more, because an attribute can also be set after the class was made."""
        guard.check_sealed(type(self), StoreContractTests)
        guard.check_statements(type(self), StoreContractTests)

    def _check_applicable(self, test: str) -> None:
        name = type(self).__name__
        if test in self.waived:
            pytest.skip(f"{name} waives {test}: {self.waived[test]}")
        if test in _SHARED_ONLY and not self.shared:
            pytest.skip(f"not applicable: {name} says that its store is not shared between processes")
