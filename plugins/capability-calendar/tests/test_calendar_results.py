"""Properties of results from occurrences, and of events from drafts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from calendar_tables import read
from hypothesis import given
from hypothesis import strategies as st
from jackfield import ErrorType, ToolError
from jackfield_calendar import calendars
from jackfield_calendar.backend import Occurrence, TimeRange
from jackfield_calendar.calendars import Calendars
from jackfield_calendar.drafts import prepared, uid_of
from jackfield_calendar.session import times
from jackfield_capability_types.calendar import Busy, EventDraft
from jackfield_testkit import ToolTestContext

EPOCH = datetime(2027, 3, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at(minute: int) -> datetime:
    return EPOCH + minute * MINUTE


def minutes(busy: list[Busy]) -> set[int]:
    return {
        number
        for each in busy
        for number in range((each.start - EPOCH) // MINUTE, (each.end - EPOCH) // MINUTE)
    }


pairs = st.tuples(st.integers(-60, 260), st.integers(1, 120)).map(lambda pair: (pair[0], sum(pair)))


@given(st.lists(pairs, max_size=10))
def test_busy_times_are_minimal_and_cover_exactly_the_taken_minutes(
    taken: list[tuple[int, int]],
) -> None:
    events = [Occurrence(at(start), at(end), title="Secret") for start, end in taken]
    busy = times("primary", events, TimeRange(at(0), at(200)), details=False)
    wanted = {number for start, end in taken for number in range(max(start, 0), min(end, 200))}
    assert minutes(busy) == wanted
    assert all(first.end < second.start for first, second in pairwise(busy))
    assert all(each.title is None for each in busy)
    detailed = times("primary", events, TimeRange(at(0), at(200)), details=True)
    assert minutes(detailed) == wanted
    assert len(detailed) == sum(start < 200 and end > 0 for start, end in taken)


DRAFT = EventDraft(
    "Fitting", EPOCH, EPOCH + timedelta(hours=1), attendees=("ann@example.org", "ben@example.org")
)


def test_the_uid_depends_only_on_the_content() -> None:
    local = replace(DRAFT, start=DRAFT.start.astimezone(ZoneInfo("Asia/Tokyo")), title=" Fitting\r\n")
    swapped = replace(DRAFT, attendees=("BEN@example.org", "ann@example.org"), description="More words")
    assert uid_of(DRAFT, "ada") == uid_of(local, "ada") == uid_of(swapped, "ada")
    others = [
        uid_of(DRAFT, "ben"),
        uid_of(DRAFT, None),
        uid_of(replace(DRAFT, title="Fitting 2"), "ada"),
        uid_of(replace(DRAFT, end=DRAFT.end + MINUTE), "ada"),
        uid_of(replace(DRAFT, calendar="team"), "ada"),
        uid_of(replace(DRAFT, attendees=()), "ada"),
    ]
    assert len({uid_of(DRAFT, "ada"), *others}) == len(others) + 1


@pytest.mark.parametrize(
    "address", ["ann", "a b@example.org", "ann@example.org\r\nX:1", '"a;b"@example.org', "a@b@c"]
)
def test_an_invalid_address_never_reaches_an_invitation(address: str) -> None:
    with pytest.raises(ToolError) as caught:
        prepared(
            replace(DRAFT, attendees=(address,)),
            user="ada",
            zone=ZoneInfo("UTC"),
            organizer=None,
            template=None,
        )
    assert caught.value.type is ErrorType.PERMANENT


@pytest.mark.parametrize(("organizer", "expected"), [("ada@example.org", "ada@example.org"), ("ada", None)])
def test_a_user_without_an_email_address_does_not_invite(organizer: str, expected: str | None) -> None:
    event = prepared(DRAFT, user="ada", zone=ZoneInfo("UTC"), organizer=organizer, template=None)
    assert event.organizer == expected


def test_calendars_of_inactive_users_are_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calendars, "MOST_OPEN", 2)

    async def main() -> None:
        made = Calendars(read({"calendars": {"personal": {"path": f"{tmp_path}/{{user}}"}}}), {})
        for user in ("ann", "ben", "cleo", "ann"):
            view = made.for_session(ToolTestContext(user=user).session)
            agenda = await view.busy(["personal"], EPOCH, EPOCH + timedelta(hours=1))
            assert agenda.busy == ()
        assert [user for _, user in made._open] == ["cleo", "ann"]
        await made.close()

    asyncio.run(main())
