"""The contract suite for the capability `calendar`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from jackfield import ErrorType
from jackfield_capability_types.calendar import Calendar, CreatedEvent

from jackfield_testkit.calendar.harness import (
    ZONE,
    CalendarHarness,
    async_test,
    busy_times,
    calendar,
    component,
    draft,
    event,
    format_busy,
    local_time,
)
from jackfield_testkit.suite import ContractTests, expect, expect_equal, expect_error, require_override

_SIGNATURE = "async def create_calendar(self, folder, objects)"
_GUESTS = ("ATTENDEE:mailto:ann@example.org", "ATTENDEE:mailto:ben@example.org")
_MORNING = ("2027-03-02 09:00", "2027-03-02 10:00")
_DAY = ("2027-03-02 00:00", "2027-03-03 00:00")
_BUSY = ["2027-03-02 09:00 - 2027-03-02 10:00"]


class CalendarContractTests(ContractTests, suite=True):
    """Subclass it and define `create_calendar` to run the contract tests of the capability `calendar`.

    A contract test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report shows the
    reason. `class Ours(CalendarContractTests, abstract=True)` makes a base class that does not run itself.
    """

    overridable = frozenset({"create_calendar", "waived"})

    @classmethod
    def check_settings(cls) -> None:
        """Raise `TypeError` for a class that does not define `create_calendar`."""
        require_override(cls, "create_calendar", _SIGNATURE)

    async def create_calendar(self, folder: Path, objects: Sequence[str]) -> Calendar:
        """Create the capability with a primary calendar in Europe/Berlin that contains only these objects.

        `folder` is empty. Each object is iCalendar text: one event with its exceptions.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define `{_SIGNATURE}`")

    @pytest.fixture
    def harness(self, tmp_path: Path) -> CalendarHarness:
        """Creates calendars for a contract test."""
        return CalendarHarness(self.create_calendar, tmp_path)

    # Busy times of single events

    @async_test
    async def test_empty_calendar_is_free(self, harness: CalendarHarness) -> None:
        """An empty calendar has no busy times."""
        async with harness.open() as view:
            expect_equal(
                await busy_times(view, "2027-03-01 00:00", "2027-03-31 00:00"), [], "an empty calendar"
            )
            expect("primary" in view.names, f"the names {list(view.names)} do not include primary")
            expect_equal(view.zone, "Europe/Berlin", "the zone of the calendar")

    @async_test
    async def test_events_are_busy_times_sorted_by_start(self, harness: CalendarHarness) -> None:
        """Each event is a busy time, sorted by start."""
        later = event("20270302T150000", "20270302T160000", uid="later")
        sooner = component("DTSTART:20270302T080000Z", "DURATION:PT90M", uid="sooner")
        async with harness.open(calendar(later), calendar(sooner)) as view:
            found = await busy_times(view, "2027-03-01 00:00", "2027-03-08 00:00")
            expected = ["2027-03-02 09:00 - 2027-03-02 10:30", "2027-03-02 15:00 - 2027-03-02 16:00"]
            expect_equal(found, expected, "two events")
            agenda = await view.busy(
                ["primary"], local_time("2027-03-01 00:00"), local_time("2027-03-08 00:00")
            )
            expect_equal([each.calendar for each in agenda.busy], ["primary"] * 2, "the calendar of each")

    @async_test
    async def test_busy_times_are_clipped_to_the_range(self, harness: CalendarHarness) -> None:
        """Events that extend beyond the range are clipped; events that only touch it are not included."""
        long = event("20270302T080000", "20270302T180000", uid="long")
        before = event("20270301T080000", "20270302T120000", "TRANSP:OPAQUE", uid="before")
        async with harness.open(calendar(long), calendar(before)) as view:
            found = await busy_times(view, "2027-03-02 11:00", "2027-03-02 17:00")
            expect_equal(
                found, ["2027-03-02 11:00 - 2027-03-02 17:00"], "events that extend beyond the range"
            )
            expect_equal(
                await busy_times(view, "2027-03-02 18:00", "2027-03-02 20:00"),
                [],
                "after the end of the last",
            )
            expect_equal(
                await busy_times(view, "2027-03-01 06:00", "2027-03-01 08:00"),
                [],
                "before the start of the first",
            )

    @async_test
    async def test_transparent_and_cancelled_events_are_free(self, harness: CalendarHarness) -> None:
        """Transparent and cancelled events are free; tentative ones are busy."""
        objects = (
            calendar(event("20270302T090000", "20270302T100000", "TRANSP:TRANSPARENT", uid="free")),
            calendar(event("20270302T110000", "20270302T120000", "STATUS:CANCELLED", uid="off")),
            calendar(event("20270302T130000", "20270302T140000", "STATUS:TENTATIVE", uid="maybe")),
        )
        async with harness.open(*objects) as view:
            found = await busy_times(view, "2027-03-02 00:00", "2027-03-03 00:00")
            expect_equal(found, ["2027-03-02 13:00 - 2027-03-02 14:00"], "a day with one tentative event")

    @async_test
    async def test_all_day_events_use_the_calendar_zone(self, harness: CalendarHarness) -> None:
        """A day starts and ends at midnight in the calendar's zone, even if it has 23 hours."""
        objects = calendar(
            component("DTSTART;VALUE=DATE:20270328", "DTEND;VALUE=DATE:20270329", uid="short-day"),
        )
        async with harness.open(objects) as view:
            agenda = await view.busy(
                ["primary"], local_time("2027-03-27 00:00"), local_time("2027-03-30 00:00")
            )
            expect_equal(
                format_busy(agenda.busy), ["2027-03-28 00:00 - 2027-03-29 00:00"], "an all-day event"
            )
            expect_equal([each.all_day for each in agenda.busy], [True], "all_day")
            utc = [(each.end - each.start) for each in agenda.busy]
            expect_equal(utc, [timedelta(hours=23)], "the length of the day on which the clocks go forward")

    @async_test
    async def test_overlapping_events_are_merged(self, harness: CalendarHarness) -> None:
        """Without details, overlapping events are one busy time; with details, each is listed."""
        objects = (
            calendar(event("20270302T090000", "20270302T110000", uid="a")),
            calendar(event("20270302T100000", "20270302T120000", uid="b")),
            calendar(event("20270302T093000", "20270302T094500", uid="c")),
        )
        async with harness.open(*objects) as view:
            found = await busy_times(view, "2027-03-02 00:00", "2027-03-03 00:00")
            expect_equal(found, ["2027-03-02 09:00 - 2027-03-02 12:00"], "three overlapping events")
            each = await busy_times(view, "2027-03-02 00:00", "2027-03-03 00:00", details=True)
            expect_equal(len(each), 3, "the number of events with details")

    @async_test
    async def test_unknown_calendar_is_rejected(self, harness: CalendarHarness) -> None:
        """An unknown calendar is an error, not an empty calendar."""
        async with harness.open() as view:
            query = view.busy(
                ["no-such-calendar"], local_time("2027-03-02 00:00"), local_time("2027-03-03 00:00")
            )
            await expect_error(query, ErrorType.PERMANENT, "busy() of an unknown calendar")

    # Busy times of recurring events

    @async_test
    async def test_recurring_events_keep_their_local_time(self, harness: CalendarHarness) -> None:
        """A weekly event keeps its local time when daylight saving time changes."""
        weekly = event("20270315T090000", "20270315T100000", "RRULE:FREQ=WEEKLY", uid="weekly")
        async with harness.open(calendar(weekly)) as view:
            found = await busy_times(view, "2027-03-22 00:00", "2027-04-06 00:00")
            days = ("2027-03-22", "2027-03-29", "2027-04-05")
            expect_equal(found, [f"{day} 09:00 - {day} 10:00" for day in days], "a weekly event in spring")
            autumn = await busy_times(view, "2027-10-25 00:00", "2027-11-02 00:00")
            fall = ("2027-10-25", "2027-11-01")
            expect_equal(autumn, [f"{day} 09:00 - {day} 10:00" for day in fall], "a weekly event in autumn")

    @async_test
    async def test_recurring_events_end_with_count_and_until(self, harness: CalendarHarness) -> None:
        """COUNT and UNTIL end a recurring event."""
        counted = event("20270301T090000", "20270301T100000", "RRULE:FREQ=DAILY;COUNT=2", uid="counted")
        until = event(
            "20270301T120000", "20270301T130000", "RRULE:FREQ=DAILY;UNTIL=20270302T110000Z", uid="until"
        )
        async with harness.open(calendar(counted), calendar(until)) as view:
            found = await busy_times(view, "2027-03-01 00:00", "2027-03-10 00:00")
            days = ("2027-03-01", "2027-03-02")
            expected = [
                line for day in days for line in (f"{day} 09:00 - {day} 10:00", f"{day} 12:00 - {day} 13:00")
            ]
            expect_equal(found, expected, "two recurring events of two days")

    @async_test
    async def test_exceptions_of_a_recurring_event_apply(self, harness: CalendarHarness) -> None:
        """EXDATE, RECURRENCE-ID, a cancelled occurrence and RDATE apply."""
        added = "RDATE;TZID=Europe/Berlin:20270306T150000"
        left_out = "EXDATE;TZID=Europe/Berlin:20270302T090000"
        daily = event(
            "20270301T090000", "20270301T100000", "RRULE:FREQ=DAILY;COUNT=4", left_out, added, uid="daily"
        )
        moved = event("20270303T140000", "20270303T150000", _recurrence_id("20270303T090000"), uid="daily")
        off = event(
            "20270304T090000",
            "20270304T100000",
            _recurrence_id("20270304T090000"),
            "STATUS:CANCELLED",
            uid="daily",
        )
        async with harness.open(calendar(daily, moved, off)) as view:
            found = await busy_times(view, "2027-03-01 00:00", "2027-03-10 00:00")
            expected = [
                "2027-03-01 09:00 - 2027-03-01 10:00",
                "2027-03-03 14:00 - 2027-03-03 15:00",
                "2027-03-06 15:00 - 2027-03-06 16:00",
            ]
            expect_equal(found, expected, "a recurring event with exceptions")

    @async_test
    async def test_moved_occurrence_counts_at_its_new_time(self, harness: CalendarHarness) -> None:
        """A moved occurrence is busy at its new time, not at its original time."""
        weekly = event("20270301T090000", "20270301T100000", "RRULE:FREQ=WEEKLY;COUNT=3", uid="weekly")
        moved = event("20270320T090000", "20270320T100000", _recurrence_id("20270315T090000"), uid="weekly")
        async with harness.open(calendar(weekly, moved)) as view:
            found = await busy_times(view, "2027-03-19 00:00", "2027-03-22 00:00")
            expect_equal(found, ["2027-03-20 09:00 - 2027-03-20 10:00"], "the range of its new time")
            expect_equal(
                await busy_times(view, "2027-03-14 00:00", "2027-03-17 00:00"),
                [],
                "the range of its original time",
            )

    # Details of events

    @async_test
    async def test_details_are_returned_only_on_request(self, harness: CalendarHarness) -> None:
        """The title and the number of attendees are returned only with `details`."""
        budget = calendar(event("20270302T090000", "20270302T100000", *_GUESTS, uid="met", title="Budget"))
        async with harness.open(budget) as view:
            span = (local_time("2027-03-02 00:00"), local_time("2027-03-03 00:00"))
            (plain,) = (await view.busy(["primary"], *span)).busy
            expect_equal((plain.title, plain.attendees), (None, None), "an event without details")
            (full,) = (await view.busy(["primary"], *span, details=True)).busy
            expect_equal((full.title, full.attendees), ("Budget", 2), "an event with details")

    @async_test
    async def test_private_events_have_no_details(self, harness: CalendarHarness) -> None:
        """A private or confidential event shows nothing but its time."""
        objects = [
            calendar(
                event(
                    f"2027030{day}T090000",
                    f"2027030{day}T100000",
                    f"CLASS:{kind}",
                    *_GUESTS,
                    uid=kind,
                    title="Secret",
                )
            )
            for day, kind in ((2, "PRIVATE"), (3, "CONFIDENTIAL"), (4, "X-EYES-ONLY"))
        ]
        async with harness.open(*objects) as view:
            query = view.busy(
                ["primary"], local_time("2027-03-01 00:00"), local_time("2027-03-08 00:00"), details=True
            )
            agenda = await query
            expect_equal(len(agenda.busy), 3, "the number of busy times")
            exposed = [each for each in agenda.busy if each.title or each.attendees is not None]
            expect(not exposed, f"details of a private event were returned: {exposed}")

    # Creating events

    @async_test
    async def test_created_event_is_busy_at_once(self, harness: CalendarHarness) -> None:
        """A created event is busy at once, with its title and its attendees."""
        async with harness.open() as view:
            made = await view.create(draft(*_MORNING, title="Räume; Plan, B", attendees=("ann@example.org",)))
            expect_equal((made.calendar, made.existed), ("primary", False), "a new event")
            expect_equal(
                (made.start, made.end), (local_time(_MORNING[0]), local_time(_MORNING[1])), "its times"
            )
            expect(made.uid, "the event has no UID")
            expect_equal(await busy_times(view, *_DAY), _BUSY, "the day of the new event")
            (found,) = (
                await view.busy(["primary"], local_time(_DAY[0]), local_time(_DAY[1]), details=True)
            ).busy
            expect_equal((found.title, found.attendees), ("Räume; Plan, B", 1), "the new event with details")

    @async_test
    async def test_overlapping_event_is_a_conflict(self, harness: CalendarHarness) -> None:
        """An event that overlaps another is a conflict that names the busy time; nothing is written."""
        daily = event("20270301T093000", "20270301T110000", "RRULE:FREQ=DAILY", uid="daily", title="Secret")
        async with harness.open(calendar(daily)) as view:
            error = await expect_error(
                view.create(draft(*_MORNING)), ErrorType.CONFLICT, "an overlapping event"
            )
            expect(
                "Secret" not in f"{error.message}{error.details}{error.suggestion}",
                "the conflict contains details of the other event",
            )
            clash = (error.details or {}).get("clash", {})
            start, end = (datetime.fromisoformat(clash.get(key, "1970-01-01")) for key in ("start", "end"))
            expect_equal(
                (start, end),
                (local_time("2027-03-02 09:30"), local_time("2027-03-02 11:00")),
                "the busy time in the details of the conflict",
            )
            expect_equal(
                len(await busy_times(view, *_DAY, details=True)), 1, "the number of events afterwards"
            )

    @async_test
    async def test_adjacent_and_transparent_events_do_not_conflict(self, harness: CalendarHarness) -> None:
        """An event may start when another ends, and may overlap one that is free."""
        objects = (
            calendar(event("20270302T080000", "20270302T090000", uid="before")),
            calendar(event("20270302T100000", "20270302T110000", uid="after")),
            calendar(event("20270302T090000", "20270302T100000", "TRANSP:TRANSPARENT", uid="free")),
            calendar(event("20270302T090000", "20270302T100000", "STATUS:CANCELLED", uid="off")),
        )
        async with harness.open(*objects) as view:
            expect_equal((await view.create(draft(*_MORNING))).existed, False, "an event in a gap")

    @async_test
    async def test_same_draft_is_created_once(self, harness: CalendarHarness) -> None:
        """Creating the same draft again, even with times in another zone, returns the existing event."""
        async with harness.open() as view:
            first = await view.create(draft(*_MORNING))
            start, end = (local_time(each).astimezone(UTC) for each in _MORNING)
            for again in (draft(*_MORNING), replace(draft(*_MORNING), start=start, end=end)):
                second = await view.create(again)
                expect_equal((second.uid, second.existed), (first.uid, True), "the same draft again")
                expect_equal((second.start, second.end), (first.start, first.end), "its times")
            expect_equal(
                len(await busy_times(view, *_DAY, details=True)), 1, "the number of events afterwards"
            )

    @async_test
    async def test_different_draft_is_a_different_event(self, harness: CalendarHarness) -> None:
        """A different title, attendee or user makes a different event, which conflicts with the first."""
        async with harness.open_shared() as view_of:
            await view_of("ada").create(draft(*_MORNING))
            for user, other in (
                ("ada", draft(*_MORNING, title="Rehearsal")),
                ("ada", draft(*_MORNING, attendees=("ann@example.org",))),
                ("ben", draft(*_MORNING)),
            ):
                await expect_error(
                    view_of(user).create(other), ErrorType.CONFLICT, f"a different draft, {other}"
                )

    @async_test
    async def test_one_of_many_concurrent_bookings_succeeds(self, harness: CalendarHarness) -> None:
        """One of several concurrent bookings of the same time succeeds; the others get a conflict."""
        async with harness.open() as view:
            drafts = [draft(*_MORNING, title=f"Fitting {number}") for number in range(5)]
            results = await asyncio.gather(*map(view.create, drafts), return_exceptions=True)
            made = [each for each in results if isinstance(each, CreatedEvent)]
            expect_equal(len(made), 1, "the number of bookings that succeeded")
            types = {getattr(each, "type", each) for each in results if not isinstance(each, CreatedEvent)}
            expect_equal(types, {ErrorType.CONFLICT}, "the errors of the others")
            expect_equal(
                len(await busy_times(view, *_DAY, details=True)), 1, "the number of events afterwards"
            )

    @async_test
    async def test_meeting_links_come_from_the_provider(self, harness: CalendarHarness) -> None:
        """The configured provider creates the link; without a provider, the event is rejected."""
        async with harness.open() as view:
            wanted = draft(*_MORNING, meeting_link=True)
            if not view.has_meeting_links:
                await expect_error(
                    view.create(wanted), ErrorType.PERMANENT, "a meeting link without a provider"
                )
                expect_equal(await busy_times(view, *_DAY), [], "the day of the rejected event")
                return
            first, second = await view.create(wanted), await view.create(wanted)
            expect(str(first.meeting_url).startswith("https://"), f"the link is {first.meeting_url!r}")
            expect_equal(second.meeting_url, first.meeting_url, "the link of the same draft again")

    @async_test
    async def test_invalid_drafts_are_rejected(self, harness: CalendarHarness) -> None:
        """An end before the start and an unknown calendar are rejected."""
        async with harness.open() as view:
            backwards = draft(_MORNING[1], _MORNING[0])
            await expect_error(
                view.create(backwards), ErrorType.PERMANENT, "an event that ends before it starts"
            )
            elsewhere = draft(*_MORNING, calendar="no-such-calendar")
            await expect_error(view.create(elsewhere), ErrorType.PERMANENT, "an unknown calendar")


def _recurrence_id(moment: str) -> str:
    return f"RECURRENCE-ID;TZID={ZONE}:{moment}"
