"""The calendar suite: broken calendars do not pass it, nothing can be dropped, and the page describes it."""

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
from jackfield_testkit.calendar_contract.desk import Desk
from jackfield_testkit.sealing import suite_tests

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "calendar.md").read_text("utf-8") if DOCS.is_dir() else ""
needs_pages = pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are in the repository only")
TESTS = suite_tests(CalendarContractTests)


def sound(place: Path, objects: Sequence[str]) -> Calendar:
    """A calendar that keeps every promise."""
    folder = place / "calendar"
    folder.mkdir(parents=True)
    for number, text in enumerate(objects):
        (folder / f"{number}.ics").write_bytes(text.encode())
    settings = {"zone": "Europe/Berlin", "calendars": {"primary": {"path": str(folder)}}}
    (offer,) = jackfield_calendar.jackfield_capabilities()
    made: Calendar = offer.create(parse_offer("capabilities", offer, settings), Services(MemoryStore()))
    return made


class View:
    """A view that does what another one does."""

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


# Every one of these breaks one promise, and the standard test beside it has to say so.


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
    """Shows a series at the hour in UTC at which it began, whatever the clocks do."""

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
    (NeverBusy, "test_events_are_busy_times_by_start"),
    (NeverBusy, "test_series_end"),
    (NeverBusy, "test_an_occurrence_moved_into_the_range"),
    (NeverBusy, "test_exceptions_of_a_series"),
    (NeverBusy, "test_all_day_events_are_days_of_the_zone"),
    (NeverBusy, "test_transparent_and_cancelled_events_take_no_time"),
    (SetsUpEverything, "test_a_calendar_that_is_not_set_up"),
    (CutsNothing, "test_times_are_cut_to_the_range"),
    (AlwaysDetailed, "test_overlapping_events_are_one_time"),
    (AlwaysDetailed, "test_details_are_told_when_asked_for"),
    (TellsSecrets, "test_private_events_stay_private"),
    (KeepsUtc, "test_series_keep_their_local_time"),
    (WritesNothing, "test_what_is_created_is_there"),
    (WritesNothing, "test_one_of_many_gets_the_time"),
    (BooksOver, "test_a_time_that_is_taken"),
    (BooksOver, "test_another_draft_is_another_event"),
    (NeverKnowsAgain, "test_the_same_draft_is_the_same_event"),
    (ConfusesUsers, "test_another_draft_is_another_event"),
    (InventsLinks, "test_meeting_links_are_never_invented"),
    (TakesAnything, "test_drafts_that_are_no_events"),
]


class Wrapped:
    def __init__(self, inner: Calendar, view: type[View]) -> None:
        self._inner = inner
        self._view = view

    def for_session(self, session: Any) -> CalendarView:
        return self._view(self._inner.for_session(session))

    async def close(self) -> None:
        await self._inner.close()


def run(test: str, view: type[View], place: Path) -> None:
    async def filled(place: Path, objects: Sequence[str]) -> Calendar:
        return Wrapped(sound(place, objects), view)

    suite = type("TestOne", (CalendarContractTests,), {"filled": filled})()
    getattr(suite, test)(Desk(filled, place))


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_a_broken_calendar_is_found_out_and_a_sound_one_is_not(
    broken: type[View], test: str, tmp_path: Path
) -> None:
    run(test, View, tmp_path / "sound")
    with pytest.raises(pytest.fail.Exception):
        run(test, broken, tmp_path / "broken")


def test_every_standard_test_has_a_calendar_that_fails_it_and_says_what_it_is_for() -> None:
    free = {"test_an_empty_calendar_is_free", "test_a_time_that_is_free"}
    assert {test for _, test in BROKEN} | free == set(TESTS)
    assert len(TESTS) == len(set(TESTS))
    assert all(getattr(CalendarContractTests, name).__doc__ for name in TESTS)


async def _filled(self: Any, place: Path, objects: Sequence[str]) -> Calendar:
    return sound(place, objects)


GOOD: dict[str, Any] = {"filled": _filled}


def test_a_standard_test_cannot_be_replaced() -> None:
    for name in TESTS:
        with pytest.raises(TypeError, match=f"replaces the standard test {name}"):
            type("TestMine", (CalendarContractTests,), {**GOOD, name: None})
    with pytest.raises(TypeError, match="replaces desk, which drives"):
        type("TestMine", (CalendarContractTests,), {**GOOD, "desk": None})
    with pytest.raises(TypeError, match="sets __test__"):
        type("TestMine", (CalendarContractTests,), {**GOOD, "__test__": False})


def test_a_subclass_has_to_say_what_it_is_about_and_why_it_waives() -> None:
    with pytest.raises(TypeError, match="define `async def filled"):
        type("TestMine", (CalendarContractTests,), {})
    with pytest.raises(TypeError, match="did you mean test_series_end"):
        type("TestMine", (CalendarContractTests,), {**GOOD, "waived": {"test_serie_end": "why"}})
    with pytest.raises(TypeError, match="without a reason"):
        type("TestMine", (CalendarContractTests,), {**GOOD, "waived": {"test_series_end": " "}})


@needs_pages
def test_the_page_names_every_standard_test_and_every_member_of_the_protocol() -> None:
    assert [name for name in (*TESTS, *CalendarContractTests.decides) if f"`{name}" not in PAGE] == []
    shapes = [protocol.Busy, protocol.Agenda, protocol.EventDraft, protocol.CreatedEvent]
    fields = [name for shape in shapes for name in inspect.get_annotations(shape)]
    methods = [name for name in vars(protocol.CalendarView) if not name.startswith("_")]
    assert [name for name in (*fields, *methods) if not re.search(rf"`{name}\b", PAGE)] == []


@needs_pages
def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
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
