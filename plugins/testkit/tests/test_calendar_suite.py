"""The calendar suite: broken calendars fail, no test can be dropped, and the page documents it."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import jackfield_calendar
import pytest
from jackfield import ErrorType, ToolError
from jackfield.offers import Services
from jackfield.settings import parse_offer
from jackfield.store import MemoryStore
from jackfield_capability_types import calendar as protocol
from jackfield_capability_types.calendar import Agenda, Calendar, CalendarView, CreatedEvent, EventDraft
from jackfield_testkit import CalendarContractTests
from jackfield_testkit.calendar.harness import CalendarHarness
from jackfield_testkit.suite import suite_tests

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "calendar.md").read_text("utf-8") if DOCS.is_dir() else ""
needs_pages = pytest.mark.skipif(not DOCS.is_dir(), reason="the docs are only in the repository")
TESTS = suite_tests(CalendarContractTests)


def correct(folder: Path, objects: Sequence[str]) -> Calendar:
    """Create a correct calendar."""
    path = folder / "calendar"
    path.mkdir(parents=True)
    for number, text in enumerate(objects):
        (path / f"{number}.ics").write_bytes(text.encode())
    settings = {"zone": "Europe/Berlin", "calendars": {"primary": {"path": str(path)}}}
    (offer,) = jackfield_calendar.jackfield_capabilities()
    made: Calendar = offer.create(parse_offer("capabilities", offer, settings), Services(MemoryStore()))
    return made


class View:
    """A view that delegates to another one."""

    def __init__(self, inner: CalendarView) -> None:
        self.inner = inner

    @property
    def names(self) -> Sequence[str]:
        return self.inner.names

    @property
    def zone(self) -> str:
        return self.inner.zone

    @property
    def has_meeting_links(self) -> bool:
        return self.inner.has_meeting_links

    async def busy(
        self, calendars: Sequence[str], start: datetime, end: datetime, *, details: bool = False
    ) -> Agenda:
        return await self.inner.busy(calendars, start, end, details=details)

    async def create(self, draft: EventDraft) -> CreatedEvent:
        return await self.inner.create(draft)


# Each of these breaks one guarantee, and the contract test next to it in BROKEN has to fail.


class NeverBusy(View):
    async def busy(self, calendars: Any, start: Any, end: Any, *, details: bool = False) -> Agenda:
        return Agenda(())


class SetsUpEverything(View):
    async def busy(self, calendars: Any, start: Any, end: Any, *, details: bool = False) -> Agenda:
        return await self.inner.busy(["primary"], start, end, details=details)


class CutsNothing(View):
    async def busy(self, calendars: Any, start: Any, end: Any, *, details: bool = False) -> Agenda:
        from datetime import timedelta

        wider = await self.inner.busy(
            calendars, start - timedelta(hours=1), end + timedelta(hours=1), details=details
        )
        return Agenda(tuple(each for each in wider.busy if each.start < end and each.end > start))


class AlwaysDetailed(View):
    async def busy(self, calendars: Any, start: Any, end: Any, *, details: bool = False) -> Agenda:
        return await self.inner.busy(calendars, start, end, details=True)


class TellsSecrets(View):
    async def busy(self, calendars: Any, start: Any, end: Any, *, details: bool = False) -> Agenda:
        agenda = await self.inner.busy(calendars, start, end, details=details)
        return Agenda(tuple(replace(each, title=each.title or "Secret") for each in agenda.busy))


class KeepsUtc(View):
    """Keeps the UTC hour of a recurring event when daylight saving time changes."""

    async def busy(self, calendars: Any, start: Any, end: Any, *, details: bool = False) -> Agenda:
        from datetime import UTC

        agenda = await self.inner.busy(calendars, start, end, details=details)
        fixed = (each.start.astimezone(UTC).replace(hour=8) for each in agenda.busy)
        return Agenda(
            tuple(replace(each, start=moved) for each, moved in zip(agenda.busy, fixed, strict=True))
        )


class WritesNothing(View):
    async def create(self, draft: EventDraft) -> CreatedEvent:
        return CreatedEvent("uid", draft.calendar, draft.start, draft.end)


class BooksOver(View):
    async def create(self, draft: EventDraft) -> CreatedEvent:
        try:
            return await self.inner.create(draft)
        except ToolError as error:
            if error.type is not ErrorType.CONFLICT:
                raise
            return CreatedEvent("uid", draft.calendar, draft.start, draft.end)


class NeverKnowsAgain(View):
    async def create(self, draft: EventDraft) -> CreatedEvent:
        return replace(await self.inner.create(draft), existed=False)


class ConfusesUsers(View):
    async def create(self, draft: EventDraft) -> CreatedEvent:
        return await self.inner.create(replace(draft, title="Fitting", attendees=()))


class InventsLinks(View):
    async def create(self, draft: EventDraft) -> CreatedEvent:
        made = await self.inner.create(replace(draft, meeting_link=False))
        return replace(made, meeting_url="https://meet.example.org/made-up")


class TakesAnything(View):
    async def create(self, draft: EventDraft) -> CreatedEvent:
        start, end = sorted((draft.start, draft.end))
        return await self.inner.create(replace(draft, start=start, end=end, calendar="primary"))


BROKEN: list[tuple[type[View], str]] = [
    (NeverBusy, "test_events_are_busy_times_sorted_by_start"),
    (NeverBusy, "test_recurring_events_end_with_count_and_until"),
    (NeverBusy, "test_moved_occurrence_counts_at_its_new_time"),
    (NeverBusy, "test_exceptions_of_a_recurring_event_apply"),
    (NeverBusy, "test_all_day_events_use_the_calendar_zone"),
    (NeverBusy, "test_transparent_and_cancelled_events_are_free"),
    (SetsUpEverything, "test_unknown_calendar_is_rejected"),
    (CutsNothing, "test_busy_times_are_clipped_to_the_range"),
    (AlwaysDetailed, "test_overlapping_events_are_merged"),
    (AlwaysDetailed, "test_details_are_returned_only_on_request"),
    (TellsSecrets, "test_private_events_have_no_details"),
    (KeepsUtc, "test_recurring_events_keep_their_local_time"),
    (WritesNothing, "test_created_event_is_busy_at_once"),
    (WritesNothing, "test_one_of_many_concurrent_bookings_succeeds"),
    (BooksOver, "test_overlapping_event_is_a_conflict"),
    (BooksOver, "test_different_draft_is_a_different_event"),
    (NeverKnowsAgain, "test_same_draft_is_created_once"),
    (ConfusesUsers, "test_different_draft_is_a_different_event"),
    (InventsLinks, "test_meeting_links_come_from_the_provider"),
    (TakesAnything, "test_invalid_drafts_are_rejected"),
]


class Wrapped:
    def __init__(self, inner: Calendar, view: type[View]) -> None:
        self._inner = inner
        self._view = view

    def for_session(self, session: Any) -> CalendarView:
        return self._view(self._inner.for_session(session))

    async def close(self) -> None:
        await self._inner.close()


def run(test: str, view: type[View], folder: Path) -> None:
    async def create(folder: Path, objects: Sequence[str]) -> Calendar:
        return Wrapped(correct(folder, objects), view)

    suite = type("TestOne", (CalendarContractTests,), {"create_calendar": create})()
    getattr(suite, test)(CalendarHarness(create, folder))


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_broken_calendar_fails_and_a_correct_one_passes(
    broken: type[View], test: str, tmp_path: Path
) -> None:
    run(test, View, tmp_path / "correct")
    with pytest.raises(pytest.fail.Exception):
        run(test, broken, tmp_path / "broken")


def test_every_contract_test_finds_a_fault_and_has_a_docstring() -> None:
    free = {"test_empty_calendar_is_free", "test_adjacent_and_transparent_events_do_not_conflict"}
    assert {test for _, test in BROKEN} | free == set(TESTS)
    assert len(TESTS) == len(set(TESTS))
    assert all(getattr(CalendarContractTests, name).__doc__ for name in TESTS)


async def _create_calendar(self: Any, folder: Path, objects: Sequence[str]) -> Calendar:
    return correct(folder, objects)


GOOD: dict[str, Any] = {"create_calendar": _create_calendar}


def test_contract_test_cannot_be_replaced() -> None:
    for name in TESTS:
        with pytest.raises(TypeError, match=f"replaces the contract test {name}"):
            type("TestMine", (CalendarContractTests,), {**GOOD, name: None})
    with pytest.raises(TypeError, match="replaces harness, which drives"):
        type("TestMine", (CalendarContractTests,), {**GOOD, "harness": None})
    with pytest.raises(TypeError, match="sets __test__"):
        type("TestMine", (CalendarContractTests,), {**GOOD, "__test__": False})


def test_incomplete_subclasses_are_rejected() -> None:
    with pytest.raises(TypeError, match="define `async def create_calendar"):
        type("TestMine", (CalendarContractTests,), {})
    with pytest.raises(TypeError, match="did you mean test_recurring_events_end_with_count_and_until"):
        type(
            "TestMine",
            (CalendarContractTests,),
            {**GOOD, "waived": {"test_recurring_events_end_with_count": "why"}},
        )
    with pytest.raises(TypeError, match="without a reason"):
        type(
            "TestMine",
            (CalendarContractTests,),
            {**GOOD, "waived": {"test_recurring_events_end_with_count_and_until": " "}},
        )


@needs_pages
def test_page_names_every_contract_test_and_member_of_the_protocol() -> None:
    assert [name for name in (*TESTS, *CalendarContractTests.overridable) if f"`{name}" not in PAGE] == []
    shapes = [protocol.Busy, protocol.Agenda, protocol.EventDraft, protocol.CreatedEvent]
    fields = [name for shape in shapes for name in inspect.get_annotations(shape)]
    methods = [name for name in vars(protocol.CalendarView) if not name.startswith("_")]
    assert [name for name in (*fields, *methods) if not re.search(rf"`{name}\b", PAGE)] == []


@needs_pages
def test_example_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in blocks] == ["test_our_calendar.py"]
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-W", "error"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(TESTS)} passed" in done.stdout
