"""The base class that the author of a calendar subclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from jackfield.capabilities.calendar import Calendar

from jackfield_testkit import capability_guard as guard
from jackfield_testkit.calendar_contract.creating import CreateTests
from jackfield_testkit.calendar_contract.desk import Desk
from jackfield_testkit.calendar_contract.privacy import PrivacyTests
from jackfield_testkit.calendar_contract.series import SeriesTests
from jackfield_testkit.calendar_contract.times import TimeTests

DECIDES = frozenset({"filled", "waived"})
"""What a subclass decides; everything else in the suite is sealed."""

_SIGNATURE = "async def filled(self, place, objects)"


class CalendarContractTests(TimeTests, SeriesTests, PrivacyTests, CreateTests):
    """Subclass it, say how a calendar is filled: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class Ours(CalendarContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    __test__: ClassVar[bool] = False

    waived: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Standard tests that cannot hold for this calendar, each with the reason."""

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__test__" not in vars(cls):
            cls.__test__ = not abstract
        guard.check_sealed(cls, CalendarContractTests, DECIDES)
        if not abstract:
            guard.check_statements(cls, CalendarContractTests, "filled", _SIGNATURE)

    async def filled(self, place: Path, objects: Sequence[str]) -> Calendar:
        """A capability whose primary calendar, in the zone Europe/Berlin, holds these objects alone.

        `place` is an empty folder for it. Each object is iCalendar text: one event with its exceptions.
        """
        raise NotImplementedError(f"{type(self).__name__} defines `{_SIGNATURE}`")

    @pytest.fixture
    def desk(self, request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
        """Where a standard test gets its calendar."""
        test = request.function.__name__
        if test in self.waived:
            pytest.skip(f"{type(self).__name__} waives {test}: {self.waived[test]}")
        return Desk(self.filled, tmp_path)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:  # noqa: ARG002
        """Check once more, because an attribute can also be set after the class was made."""
        guard.check_sealed(type(self), CalendarContractTests, DECIDES)
        guard.check_statements(type(self), CalendarContractTests, "filled", _SIGNATURE)
