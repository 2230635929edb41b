"""What `create` promises."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from jackfield import ErrorType
from jackfield_capability_types.calendar import CreatedEvent

from jackfield_testkit.calendar_contract.desk import Desk, at, draft, on_a_loop, taken
from jackfield_testkit.calendar_contract.objects import calendar, event
from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.trials import refused

_MORNING = ("2027-03-02 09:00", "2027-03-02 10:00")
_DAY = ("2027-03-02 00:00", "2027-03-03 00:00")
_BUSY = ["2027-03-02 09:00 - 2027-03-02 10:00"]


class CreateTests:
    """Events that are really written down."""

    @on_a_loop
    async def test_what_is_created_is_there(self, desk: Desk) -> None:
        """An event takes its time as soon as it is created, with its title and its attendees."""
        async with desk.calendar() as view:
            made = await view.create(draft(*_MORNING, title="Räume; Plan, B", attendees=("ann@example.org",)))
            same((made.calendar, made.existed), ("primary", False), "a new event")
            same((made.start, made.end), (at(_MORNING[0]), at(_MORNING[1])), "its times")
            holds(made.uid, "an event has no UID")
            same(await taken(view, *_DAY), _BUSY, "the day of the new event")
            (found,) = (await view.busy(["primary"], at(_DAY[0]), at(_DAY[1]), details=True)).busy
            same((found.title, found.attendees), ("Räume; Plan, B", 1), "the new event with details")

    @on_a_loop
    async def test_a_time_that_is_taken(self, desk: Desk) -> None:
        """An event that overlaps another is refused with the time that is taken, and nothing is written."""
        daily = event("20270301T093000", "20270301T110000", "RRULE:FREQ=DAILY", uid="daily", title="Secret")
        async with desk.calendar(calendar(daily)) as view:
            error = await refused(view.create(draft(*_MORNING)), ErrorType.CONFLICT, "an event over another")
            holds(
                "Secret" not in f"{error.message}{error.details}{error.suggestion}",
                "a conflict tells details",
            )
            clash = (error.details or {}).get("clash", {})
            start, end = (datetime.fromisoformat(clash.get(key, "1970-01-01")) for key in ("start", "end"))
            same(
                (start, end),
                (at("2027-03-02 09:30"), at("2027-03-02 11:00")),
                "details of the conflict: clash",
            )
            same(len(await taken(view, *_DAY, details=True)), 1, "the number of events afterwards")

    @on_a_loop
    async def test_a_time_that_is_free(self, desk: Desk) -> None:
        """An event may begin when another ends, and stand over one that takes no time."""
        objects = (
            calendar(event("20270302T080000", "20270302T090000", uid="before")),
            calendar(event("20270302T100000", "20270302T110000", uid="after")),
            calendar(event("20270302T090000", "20270302T100000", "TRANSP:TRANSPARENT", uid="free")),
            calendar(event("20270302T090000", "20270302T100000", "STATUS:CANCELLED", uid="off")),
        )
        async with desk.calendar(*objects) as view:
            same((await view.create(draft(*_MORNING))).existed, False, "an event in a gap")

    @on_a_loop
    async def test_the_same_draft_is_the_same_event(self, desk: Desk) -> None:
        """Created again, also with its times told in another zone, it is found and nothing is written."""
        async with desk.calendar() as view:
            first = await view.create(draft(*_MORNING))
            start, end = (at(each).astimezone(UTC) for each in _MORNING)
            for again in (draft(*_MORNING), replace(draft(*_MORNING), start=start, end=end)):
                second = await view.create(again)
                same((second.uid, second.existed), (first.uid, True), "the same draft again")
                same((second.start, second.end), (first.start, first.end), "its times")
            same(len(await taken(view, *_DAY, details=True)), 1, "the number of events afterwards")

    @on_a_loop
    async def test_another_draft_is_another_event(self, desk: Desk) -> None:
        """Another title, attendee or user makes another event, which the first one stands in the way of."""
        async with desk.shared() as view_of:
            await view_of("ada").create(draft(*_MORNING))
            for user, other in (
                ("ada", draft(*_MORNING, title="Rehearsal")),
                ("ada", draft(*_MORNING, attendees=("ann@example.org",))),
                ("ben", draft(*_MORNING)),
            ):
                await refused(view_of(user).create(other), ErrorType.CONFLICT, f"another draft, {other}")

    @on_a_loop
    async def test_one_of_many_gets_the_time(self, desk: Desk) -> None:
        """Of several that book one time at once, one gets it and the others a conflict."""
        async with desk.calendar() as view:
            drafts = [draft(*_MORNING, title=f"Fitting {number}") for number in range(5)]
            answers = await asyncio.gather(*map(view.create, drafts), return_exceptions=True)
            made = [each for each in answers if isinstance(each, CreatedEvent)]
            same(len(made), 1, "the number of events of five that want one time")
            types = {getattr(each, "type", each) for each in answers if not isinstance(each, CreatedEvent)}
            same(types, {ErrorType.CONFLICT}, "what the others were told")
            same(len(await taken(view, *_DAY, details=True)), 1, "the number of events afterwards")

    @on_a_loop
    async def test_meeting_links_are_never_invented(self, desk: Desk) -> None:
        """A link comes from the provider that is configured; without one the event is refused."""
        async with desk.calendar() as view:
            wanted = draft(*_MORNING, meeting_link=True)
            if not view.has_meeting_links:
                await refused(view.create(wanted), ErrorType.PERMANENT, "a link that nobody makes")
                same(await taken(view, *_DAY), [], "the day of the event that was refused")
                return
            first, second = await view.create(wanted), await view.create(wanted)
            holds(str(first.meeting_url).startswith("https://"), f"the link is {first.meeting_url!r}")
            same(second.meeting_url, first.meeting_url, "the link of the same draft again")

    @on_a_loop
    async def test_drafts_that_are_no_events(self, desk: Desk) -> None:
        """An end before the start and a calendar nobody set up are refused."""
        async with desk.calendar() as view:
            backwards = draft(_MORNING[1], _MORNING[0])
            await refused(view.create(backwards), ErrorType.PERMANENT, "an event that ends before it starts")
            elsewhere = draft(*_MORNING, calendar="no-such-calendar")
            await refused(view.create(elsewhere), ErrorType.PERMANENT, "a calendar that is not set up")
