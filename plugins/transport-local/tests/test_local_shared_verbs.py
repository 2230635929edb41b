"""One verb for several things, each at its own time: as many calls, and each confirmed by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from local_session import Session, session

_WAITS = {"type": "CONFIRMATION_REQUIRED", "message": "The user has to confirm."}


def _talk(steps: Callable[[Session], Awaitable[None]]) -> None:
    async def run() -> None:
        async with session() as talk, asyncio.timeout(60):
            await steps(talk)

    asyncio.run(run())


async def _booked(talk: Session, said: str) -> list[tuple[str, str, str]]:
    """The events that a message leads to, each of which waits for the user's word."""
    made = []
    await talk.says(said)
    while talk.calls:
        assert talk.calls[-1].tool_id == "calendar_create_event"
        args: dict[str, Any] = talk.args
        made.append((args["title"], args["start_time"][:16], args["end_time"][11:16]))
        await talk.gets(error=_WAITS)
    return made


@pytest.mark.parametrize(
    ("said", "events"),
    [
        (
            "book Dentist on Thursday at 9 am and Yoga on Friday at 6 pm",
            [("Dentist", "2026-11-19T09:00", "10:00"), ("Yoga", "2026-11-20T18:00", "19:00")],
        ),
        (
            "put Kick-off on Tuesday from 10 to 11 and Retro on Wednesday from 2 to 3 pm into my calendar",
            [("Kick-off", "2026-11-17T10:00", "11:00"), ("Retro", "2026-11-18T14:00", "15:00")],
        ),
        (
            "schedule lunch with Otto tomorrow at noon for an hour"
            " and a call with Mara and Lea on Friday at 3pm for 30 minutes",
            [
                ("Lunch with Otto", "2026-11-17T12:00", "13:00"),
                ("Call with Mara and Lea", "2026-11-20T15:00", "15:30"),
            ],
        ),
        (
            "add Standup tomorrow at 9, Lunch tomorrow at 12 and Retro tomorrow at 4 pm",
            [
                ("Standup", "2026-11-17T09:00", "10:00"),
                ("Lunch", "2026-11-17T12:00", "13:00"),
                ("Retro", "2026-11-17T16:00", "17:00"),
            ],
        ),
        (
            "book lunch on Thursday at noon with Otto and Mara and yoga on Friday at 6 pm",
            [
                ("Lunch with Otto and Mara", "2026-11-19T12:00", "13:00"),
                ("Yoga", "2026-11-20T18:00", "19:00"),
            ],
        ),
        (
            "put lunch on Thursday at noon and dinner at 7 pm",
            [("Lunch", "2026-11-19T12:00", "13:00"), ("Dinner", "2026-11-19T19:00", "20:00")],
        ),
    ],
)
def test_what_shares_a_verb_is_booked_one_by_one(said: str, events: list[tuple[str, str, str]]) -> None:
    async def steps(talk: Session) -> None:
        assert await _booked(talk, said) == events

    _talk(steps)


@pytest.mark.parametrize(
    "said",
    [
        "book a meeting called Print and Paper on Thursday at 2 pm for an hour",
        "book a session with Mara and Otto on Thursday at 9 for an hour",
        'book "Plan on Monday and build on Tuesday" on Thursday at 9 for an hour',
        "book a Review on Thursday between 9 and 10",
        "schedule a review on Tuesday at 10 and invite ann@example.org",
        "schedule a review on Tuesday at 10 and I will be away on Friday at 9",
    ],
)
def test_one_thing_stays_one(said: str) -> None:
    async def steps(talk: Session) -> None:
        assert len(await _booked(talk, said)) == 1

    _talk(steps)


def test_each_is_asked_for_what_it_lacks() -> None:
    async def steps(talk: Session) -> None:
        assert "At what time?" in await talk.says("book Dentist on Thursday and Yoga on Friday")
        assert await _booked(talk, "at 9 am") == [("Dentist", "2026-11-19T09:00", "10:00")]
        assert await _booked(talk, "6 pm") == [("Yoga", "2026-11-20T18:00", "19:00")]

    _talk(steps)


def test_another_thing_that_is_added_is_no_correction_of_the_last() -> None:
    async def steps(talk: Session) -> None:
        assert len(await _booked(talk, "book Dentist on Thursday at 9 am for an hour")) == 1
        assert await _booked(talk, "and Yoga on Friday at 6 pm") == [("Yoga", "2026-11-20T18:00", "19:00")]
        assert await _booked(talk, "and on Saturday at 10") == [("Yoga", "2026-11-21T10:00", "11:00")]

    _talk(steps)
