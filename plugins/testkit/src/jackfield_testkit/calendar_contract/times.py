"""What `busy` promises of single events."""

from __future__ import annotations

from datetime import timedelta

from jackfield import ErrorType

from jackfield_testkit.calendar_contract.desk import Desk, at, on_a_loop, shown, taken
from jackfield_testkit.calendar_contract.objects import calendar, component, event
from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.trials import refused


class TimeTests:
    """When a calendar is busy."""

    @on_a_loop
    async def test_an_empty_calendar_is_free(self, desk: Desk) -> None:
        """Nothing is taken where nothing stands, and that is an answer."""
        async with desk.calendar() as view:
            same(await taken(view, "2027-03-01 00:00", "2027-03-31 00:00"), [], "an empty calendar")
            holds("primary" in view.names, f"names are {list(view.names)}, without primary")
            same(view.zone, "Europe/Berlin", "the zone of the calendar")

    @on_a_loop
    async def test_events_are_busy_times_by_start(self, desk: Desk) -> None:
        """Every event takes its time, and the earlier one comes first."""
        later = event("20270302T150000", "20270302T160000", uid="later")
        sooner = component("DTSTART:20270302T080000Z", "DURATION:PT90M", uid="sooner")
        async with desk.calendar(calendar(later), calendar(sooner)) as view:
            found = await taken(view, "2027-03-01 00:00", "2027-03-08 00:00")
            expected = ["2027-03-02 09:00 - 2027-03-02 10:30", "2027-03-02 15:00 - 2027-03-02 16:00"]
            same(found, expected, "two events")
            agenda = await view.busy(["primary"], at("2027-03-01 00:00"), at("2027-03-08 00:00"))
            same([each.calendar for each in agenda.busy], ["primary"] * 2, "the calendar of each")

    @on_a_loop
    async def test_times_are_cut_to_the_range(self, desk: Desk) -> None:
        """What reaches beyond the range is cut to it; what only touches it is not in it."""
        long = event("20270302T080000", "20270302T180000", uid="long")
        before = event("20270301T080000", "20270302T120000", "TRANSP:OPAQUE", uid="before")
        async with desk.calendar(calendar(long), calendar(before)) as view:
            found = await taken(view, "2027-03-02 11:00", "2027-03-02 17:00")
            same(found, ["2027-03-02 11:00 - 2027-03-02 17:00"], "events that reach beyond the range")
            same(await taken(view, "2027-03-02 18:00", "2027-03-02 20:00"), [], "after the end of the last")
            same(
                await taken(view, "2027-03-01 06:00", "2027-03-01 08:00"), [], "before the start of the first"
            )

    @on_a_loop
    async def test_transparent_and_cancelled_events_take_no_time(self, desk: Desk) -> None:
        """A reminder, and a meeting that was called off, leave the time free; a tentative one does not."""
        objects = (
            calendar(event("20270302T090000", "20270302T100000", "TRANSP:TRANSPARENT", uid="free")),
            calendar(event("20270302T110000", "20270302T120000", "STATUS:CANCELLED", uid="off")),
            calendar(event("20270302T130000", "20270302T140000", "STATUS:TENTATIVE", uid="maybe")),
        )
        async with desk.calendar(*objects) as view:
            found = await taken(view, "2027-03-02 00:00", "2027-03-03 00:00")
            same(found, ["2027-03-02 13:00 - 2027-03-02 14:00"], "a day with one tentative event")

    @on_a_loop
    async def test_all_day_events_are_days_of_the_zone(self, desk: Desk) -> None:
        """A day begins and ends at the calendar's midnight, also when it has 23 hours."""
        objects = calendar(
            component("DTSTART;VALUE=DATE:20270328", "DTEND;VALUE=DATE:20270329", uid="short-day"),
        )
        async with desk.calendar(objects) as view:
            agenda = await view.busy(["primary"], at("2027-03-27 00:00"), at("2027-03-30 00:00"))
            same(shown(agenda.busy), ["2027-03-28 00:00 - 2027-03-29 00:00"], "an all-day event")
            same([each.all_day for each in agenda.busy], [True], "all_day")
            utc = [(each.end - each.start) for each in agenda.busy]
            same(utc, [timedelta(hours=23)], "the length of the day on which the clocks go forward")

    @on_a_loop
    async def test_overlapping_events_are_one_time(self, desk: Desk) -> None:
        """Without details nobody learns how many events take a time; with details each stands alone."""
        objects = (
            calendar(event("20270302T090000", "20270302T110000", uid="a")),
            calendar(event("20270302T100000", "20270302T120000", uid="b")),
            calendar(event("20270302T093000", "20270302T094500", uid="c")),
        )
        async with desk.calendar(*objects) as view:
            found = await taken(view, "2027-03-02 00:00", "2027-03-03 00:00")
            same(found, ["2027-03-02 09:00 - 2027-03-02 12:00"], "three events that overlap")
            each = await taken(view, "2027-03-02 00:00", "2027-03-03 00:00", details=True)
            same(len(each), 3, "the number of events with details")

    @on_a_loop
    async def test_a_calendar_that_is_not_set_up(self, desk: Desk) -> None:
        """Asking for a calendar nobody set up is an error, not an empty one."""
        async with desk.calendar() as view:
            asked = view.busy(["no-such-calendar"], at("2027-03-02 00:00"), at("2027-03-03 00:00"))
            await refused(asked, ErrorType.PERMANENT, "busy() of a calendar that is not set up")
