"""What `busy` promises of events that repeat."""

from __future__ import annotations

from jackfield_testkit.calendar_contract.desk import Desk, on_a_loop, taken
from jackfield_testkit.calendar_contract.objects import ZONE, calendar, event
from jackfield_testkit.store_contract.verdict import same


class SeriesTests:
    """When a calendar is busy again."""

    @on_a_loop
    async def test_series_keep_their_local_time(self, desk: Desk) -> None:
        """A weekly event stays at its hour on the wall when the clocks change."""
        weekly = event("20270315T090000", "20270315T100000", "RRULE:FREQ=WEEKLY", uid="weekly")
        async with desk.calendar(calendar(weekly)) as view:
            found = await taken(view, "2027-03-22 00:00", "2027-04-06 00:00")
            days = ("2027-03-22", "2027-03-29", "2027-04-05")
            same(found, [f"{day} 09:00 - {day} 10:00" for day in days], "a weekly event in spring")
            autumn = await taken(view, "2027-10-25 00:00", "2027-11-02 00:00")
            fall = ("2027-10-25", "2027-11-01")
            same(autumn, [f"{day} 09:00 - {day} 10:00" for day in fall], "a weekly event in autumn")

    @on_a_loop
    async def test_series_end(self, desk: Desk) -> None:
        """COUNT and UNTIL end a series."""
        counted = event("20270301T090000", "20270301T100000", "RRULE:FREQ=DAILY;COUNT=2", uid="counted")
        until = event(
            "20270301T120000", "20270301T130000", "RRULE:FREQ=DAILY;UNTIL=20270302T110000Z", uid="until"
        )
        async with desk.calendar(calendar(counted), calendar(until)) as view:
            found = await taken(view, "2027-03-01 00:00", "2027-03-10 00:00")
            days = ("2027-03-01", "2027-03-02")
            expected = [
                line for day in days for line in (f"{day} 09:00 - {day} 10:00", f"{day} 12:00 - {day} 13:00")
            ]
            same(found, expected, "two series of two days")

    @on_a_loop
    async def test_exceptions_of_a_series(self, desk: Desk) -> None:
        """One occurrence is left out, one is moved, one is cancelled, one is added."""
        added = "RDATE;TZID=Europe/Berlin:20270306T150000"
        left_out = "EXDATE;TZID=Europe/Berlin:20270302T090000"
        daily = event(
            "20270301T090000", "20270301T100000", "RRULE:FREQ=DAILY;COUNT=4", left_out, added, uid="daily"
        )
        moved = event("20270303T140000", "20270303T150000", _instead_of("20270303T090000"), uid="daily")
        off = event(
            "20270304T090000",
            "20270304T100000",
            _instead_of("20270304T090000"),
            "STATUS:CANCELLED",
            uid="daily",
        )
        async with desk.calendar(calendar(daily, moved, off)) as view:
            found = await taken(view, "2027-03-01 00:00", "2027-03-10 00:00")
            expected = [
                "2027-03-01 09:00 - 2027-03-01 10:00",
                "2027-03-03 14:00 - 2027-03-03 15:00",
                "2027-03-06 15:00 - 2027-03-06 16:00",
            ]
            same(found, expected, "a series with exceptions")

    @on_a_loop
    async def test_an_occurrence_moved_into_the_range(self, desk: Desk) -> None:
        """An occurrence counts where it is now, not where it would have been."""
        weekly = event("20270301T090000", "20270301T100000", "RRULE:FREQ=WEEKLY;COUNT=3", uid="weekly")
        moved = event("20270320T090000", "20270320T100000", _instead_of("20270315T090000"), uid="weekly")
        async with desk.calendar(calendar(weekly, moved)) as view:
            found = await taken(view, "2027-03-19 00:00", "2027-03-22 00:00")
            same(found, ["2027-03-20 09:00 - 2027-03-20 10:00"], "the range it was moved into")
            same(await taken(view, "2027-03-14 00:00", "2027-03-17 00:00"), [], "the range it was moved from")


def _instead_of(moment: str) -> str:
    return f"RECURRENCE-ID;TZID={ZONE}:{moment}"
