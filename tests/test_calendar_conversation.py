"""A conversation about a meeting with a real CalDAV server: search, proposal, confirmation, booking."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jackfield import ToolCall
from jackfield.runtime import Runtime
from jackfield.settings import Settings
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_testkit.calendar import calendar, event
from jackfield_testkit.calendar.radicale import PASSWORD, USER, Radicale, run_radicale

TAKES_PART = (
    "jackfield-policies",
    "jackfield-capability-calendar",
    "jackfield-tool-calendar-get-availability",
    "jackfield-tool-calendar-create-event",
)

# Every Monday at nine; the clocks in Berlin go forward on Sunday, 28 March 2027.
STANDUP = event("20270301T090000", "20270301T093000", "RRULE:FREQ=WEEKLY", uid="standup", title="Standup")
MOVED = event(
    "20270405T110000",
    "20270405T113000",
    "RECURRENCE-ID;TZID=Europe/Berlin:20270405T090000",
    uid="standup",
    title="Standup",
)
LUNCH = event("20270329T120000", "20270329T130000", "CLASS:PRIVATE", uid="lunch", title="A secret")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Radicale]:
    with run_radicale(tmp_path) as radicale:
        yield radicale


class Conversation:
    """A text session, the messages to its client, and calls as a model makes them."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.cards: list[dict[str, Any]] = []
        self.session: Any = None

    async def begin(self, user: str) -> None:
        def publish(event: str, fields: Any, *, once: bool = False) -> None:
            if event == "confirmation_required":
                self.cards.append(dict(fields))

        self.session = await self.runtime.open_session("text", user=user, publish=publish)

    async def says(self, words: str) -> None:
        await self.runtime.begin_turn(self.session, words)

    async def call(self, tool: str, **arguments: Any) -> Any:
        (answer,) = await self.runtime.orchestrator.handle(
            self.session, [ToolCall(tool, json.dumps(arguments), None)]
        )
        return json.loads(answer.wire)

    async def approves(self) -> Any:
        answer = await self.runtime.resolve_confirmation(
            self.session, self.cards.pop()["token"], approve=True
        )
        wire: Any = getattr(answer, "wire", None)
        return json.loads(wire)

    async def availability(self, start: str, end: str, **more: Any) -> Any:
        asked = {"start_date": start, "end_date": end, "time_zone": "Europe/Berlin", **more}
        answer = await self.call("calendar_get_availability", **asked)
        assert answer["ok"], answer
        return answer["data"]


def frozen(folder: Path, **primary: Any) -> Settings:
    calendars = {"primary": primary}
    said = {"zone": "Europe/Berlin", "organizer": "studio@example.org", "calendars": calendars}
    settings = Settings(
        allow=TAKES_PART,
        registry=folder / "tool_registry.json",
        store="memory",
        tables={"capabilities": {"calendar": said}},
    )
    built = build(settings)
    assert built.snapshot, built.findings
    write_snapshot(built.snapshot, settings.registry)
    return settings


MEETING = {
    "title": "Spring campaign",
    "start_time": "2027-03-29T14:00:00+02:00",
    "end_time": "2027-03-29T15:30:00+02:00",
    "attendees": ["ann@example.org", "ben@example.org"],
    "time_zone": "Europe/Berlin",
}


async def scheduling(talk: Conversation, server: Radicale) -> None:
    await talk.begin("ada")

    await talk.says("Can we meet on Monday after the clocks change?")
    seen = await talk.availability("2027-03-29T08:00:00+02:00", "2027-03-29T18:00:00+02:00")
    # The standup stays at nine local time, an hour earlier in UTC than the week before.
    assert [(each["start"], each["end"]) for each in seen["existing_events"]] == [
        ("2027-03-29T09:00:00+02:00", "2027-03-29T09:30:00+02:00"),
        ("2027-03-29T12:00:00+02:00", "2027-03-29T13:00:00+02:00"),
    ]
    assert [each["title"] for each in seen["existing_events"]] == [None, None]
    assert [(each["start"][11:16], each["duration_minutes"]) for each in seen["available_slots"]] == [
        ("08:00", 60),
        ("09:30", 150),
        ("13:00", 300),
    ]
    assert seen["summary"] == "2 busy periods, 3 available slots (510 minutes in all)"
    assert seen["complete"] is True

    await talk.says("Two in the afternoon, with Ann and Ben.")
    asked = await talk.call("calendar_create_event", **MEETING)
    assert asked["error"]["type"] == "CONFIRMATION_REQUIRED"
    preview = asked["error"]["confirmation_request"]["preview"]
    for line in (
        "“Spring campaign” in the primary calendar",
        "Monday, 29 March 2027, 14:00 CEST (Europe/Berlin)",
        "1 h 30 min",
        "ann@example.org, ben@example.org",
    ):
        assert line in preview
    assert "Spring campaign" not in server.texts("work")

    done = await talk.approves()
    assert done["ok"], done
    assert done["data"]["status"] == "created"
    assert done["data"]["start"] == "2027-03-29T14:00:00+02:00"
    assert done["data"]["duration_minutes"] == 90
    # Radicale sends no invitations, and the answer does not claim that it did.
    assert done["data"]["invited"] == []


async def booked(talk: Conversation, server: Radicale) -> None:
    text = server.texts("work").replace("\r\n ", "").replace("\n ", "")
    assert "SUMMARY:Spring campaign" in text
    assert "DTSTART;TZID=Europe/Berlin:20270329T140000" in text
    assert "ORGANIZER:mailto:studio@example.org" in text
    assert text.count("RSVP=TRUE:mailto:") == 2

    await talk.says("What does my Monday look like now?")
    seen = await talk.availability(
        "2027-03-29T08:00:00+02:00", "2027-03-29T18:00:00+02:00", include_details=True
    )
    assert [(each["start"][11:16], each["title"]) for each in seen["existing_events"]] == [
        ("09:00", "Standup"),
        ("12:00", None),
        ("14:00", "Spring campaign"),
    ]
    assert seen["existing_events"][2]["attendees"] == 2

    await talk.says("And put a review there as well.")
    await talk.call("calendar_create_event", **{**MEETING, "title": "Review"})
    refused = await talk.approves()
    assert refused["error"]["type"] == "CONFLICT"
    assert refused["error"]["details"]["clash"] == {
        "start": "2027-03-29T14:00:00+02:00",
        "end": "2027-03-29T15:30:00+02:00",
    }
    assert "Review" not in server.texts("work")

    await talk.says("Book the campaign once more, in case it got lost.")
    await talk.call("calendar_create_event", **MEETING)
    again = await talk.approves()
    assert again["data"]["status"] == "existed"
    assert server.texts("work").count("SUMMARY:Spring campaign") == 1


async def around_the_change(talk: Conversation) -> None:
    await talk.says("When are the next standups?")
    seen = await talk.availability("2027-03-22T00:00:00+01:00", "2027-04-06T00:00:00+02:00")
    standups = [each["start"] for each in seen["existing_events"] if each["end"][11:16] in ("09:30", "11:30")]
    assert standups == ["2027-03-22T09:00:00+01:00", "2027-03-29T09:00:00+02:00", "2027-04-05T11:00:00+02:00"]

    await talk.says("Add half an hour on Monday at a quarter past nine.")
    times = {"start_time": "2027-03-29T07:15:00Z", "end_time": "2027-03-29T07:45:00Z"}
    await talk.call("calendar_create_event", **{**MEETING, **times, "title": "Coffee"})
    refused = await talk.approves()
    assert refused["error"]["details"]["clash"]["start"] == "2027-03-29T09:00:00+02:00"


def test_a_meeting_is_found_proposed_confirmed_and_booked(
    server: Radicale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.make("work", [calendar(STANDUP, MOVED), calendar(LUNCH)])
    monkeypatch.setenv("CALDAV_PASSWORD", PASSWORD)
    server_said = {"url": url, "user": USER, "password_env": "CALDAV_PASSWORD", "timeout_seconds": 30}
    settings = frozen(tmp_path, backend="caldav", **server_said)

    async def main() -> None:
        runtime = await Runtime.start(settings)
        talk = Conversation(runtime)
        await scheduling(talk, server)
        await booked(talk, server)
        await around_the_change(talk)
        await runtime.close()

    asyncio.run(main())


def test_the_calendar_works_in_a_folder_without_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = frozen(tmp_path)
    bare = Settings(allow=TAKES_PART, registry=settings.registry, store="memory")

    async def main() -> Any:
        runtime = await Runtime.start(bare)
        talk = Conversation(runtime)
        await talk.begin("ada")
        before = await talk.availability("2027-03-29T08:00:00Z", "2027-03-29T18:00:00Z")
        await talk.call("calendar_create_event", **MEETING)
        made = await talk.approves()
        await talk.says("And now?")
        after = await talk.availability("2027-03-29T08:00:00Z", "2027-03-29T18:00:00Z")
        await runtime.close()
        return before, made, after

    before, made, after = asyncio.run(main())
    assert before["summary"] == "0 busy periods, 1 available slot (600 minutes in all)"
    assert made["data"]["status"] == "created"
    assert after["summary"] == "1 busy period, 2 available slots (510 minutes in all)"
    (written,) = (tmp_path / "calendars" / "primary").glob("*.ics")
    assert "SUMMARY:Spring campaign" in written.read_text("utf-8")
