"""The base class that the author of a calendar subclasses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from jackfield_capability_types.calendar import Calendar

from jackfield_testkit.calendar_contract.creating import CreateTests
from jackfield_testkit.calendar_contract.desk import Desk
from jackfield_testkit.calendar_contract.privacy import PrivacyTests
from jackfield_testkit.calendar_contract.series import SeriesTests
from jackfield_testkit.calendar_contract.times import TimeTests
from jackfield_testkit.sealing import SealedTests, check_defined

_SIGNATURE = "async def filled(self, place, objects)"


class CalendarContractTests(SealedTests, TimeTests, SeriesTests, PrivacyTests, CreateTests, suite=True):
    """Subclass it, say how a calendar is filled: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class Ours(CalendarContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    decides = frozenset({"filled", "waived"})

    @classmethod
    def check_statements(cls) -> None:
        """Refuse a class that does not say what it tests."""
        check_defined(cls, "filled", _SIGNATURE)

    async def filled(self, place: Path, objects: Sequence[str]) -> Calendar:
        """A capability whose primary calendar, in the zone Europe/Berlin, holds these objects alone.

        `place` is an empty folder for it. Each object is iCalendar text: one event with its exceptions.
        """
        raise NotImplementedError(f"{type(self).__name__} defines `{_SIGNATURE}`")

    @pytest.fixture
    def desk(self, tmp_path: Path) -> Desk:
        """Where a standard test gets its calendar."""
        return Desk(self.filled, tmp_path)
