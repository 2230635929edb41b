"""The base class that the author of a store subclasses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from jackfield.store import Store

from jackfield_testkit.sealing import SealedTests, standard_tests
from jackfield_testkit.store_contract.claims import ClaimTests
from jackfield_testkit.store_contract.crashes import CrashTests
from jackfield_testkit.store_contract.doubts import DoubtTests
from jackfield_testkit.store_contract.model import ModelTests
from jackfield_testkit.store_contract.processes import ProcessTests
from jackfield_testkit.store_contract.streams import StreamTests
from jackfield_testkit.store_contract.values import ValueTests
from jackfield_testkit.store_contract.world import World

_SHARED_ONLY = frozenset(standard_tests(ProcessTests, CrashTests))


class StoreContractTests(
    SealedTests,
    ValueTests,
    ClaimTests,
    DoubtTests,
    StreamTests,
    ModelTests,
    ProcessTests,
    CrashTests,
    suite=True,
):
    """Subclass it, say how the store is opened: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class OurStores(StoreContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    decides = frozenset({"opener", "place", "with_clock", "shared", "waived", "rounds", "examples", "seed"})

    opener: ClassVar[str] = ""
    """An import string, `"module:function"`: called with a place it returns a store, or awaits one."""

    shared: ClassVar[bool] = True
    """Whether stores that several processes open on one place are one store."""

    rounds: ClassVar[int] = 10
    """How often a process is killed in the tests that kill one."""

    examples: ClassVar[int] = 30
    """How many sequences of operations the store is compared with the model for."""

    seed: ClassVar[int] = 1
    """What the moments of the kills are drawn from."""

    @classmethod
    def check_statements(cls) -> None:
        """Refuse a class that does not say which store it is about."""
        module, colon, function = cls.opener.partition(":")
        if not (module and colon and function):
            raise TypeError(
                f'{cls.__name__} does not say how its store is opened; set opener = "module:function", where '
                "function(place) returns a store, in this process and in any other"
            )

    def place(self, tmp_path: Path) -> str:
        """Where a test's stores are opened: a new place every time."""
        return str(tmp_path / "store")

    def with_clock(self, place: str, clock: Callable[[], float]) -> Store | None:  # noqa: ARG002
        """A store that tells the time by a function; override it if there is a way to make one."""
        return None

    @pytest.fixture
    def world(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
        """The place, and who works there."""
        if request.function.__name__ in _SHARED_ONLY and not self.shared:
            name = type(self).__name__
            pytest.skip(f"not applicable: {name} says that its store is not shared between processes")
        world = World(self.place(tmp_path), self.opener, self.with_clock)
        yield world
        world.close()
