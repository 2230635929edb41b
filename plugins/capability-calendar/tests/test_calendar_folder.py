"""A folder of .ics files: files of other programs, concurrent processes, and processes that die."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from calendar_tables import read
from icalendar import Calendar as ICalendar
from jackfield import ErrorType, ToolError
from jackfield_calendar.calendars import Calendars
from jackfield_capability_types.calendar import Agenda, CalendarView, EventDraft
from jackfield_testkit import ToolTestContext
from jackfield_testkit.calendar import calendar, component, event

START = datetime(2027, 3, 2, 9, tzinfo=UTC)
GOOD = calendar(event("20270302T100000", "20270302T110000", uid="good"))


def view(folder: Path, user: str | None = "ada", **said: Any) -> CalendarView:
    settings = {"zone": "Europe/Berlin", "calendars": {"primary": {"path": str(folder)}}, **said}
    return Calendars(read(settings), {}).for_session(ToolTestContext(user=user).session)


def agenda(
    folder: Path, hours: float = 12, start: datetime = START - timedelta(hours=4), **said: Any
) -> Agenda:
    asked = view(folder, **said).busy(["primary"], start, start + timedelta(hours=hours))
    return asyncio.run(asked)


def put(folder: Path, **texts: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.ics").write_bytes(text.encode())


MALFORMED = {
    "empty": ("", "it is not iCalendar"),
    "prose": ("Dear diary,\r\ntoday I met Ann.\r\n", "it is not iCalendar"),
    "cut off": (GOOD[:-60], "it is not iCalendar"),
    "no start": (
        GOOD.replace("DTSTART;TZID=Europe/Berlin:20270302T100000\r\n", ""),
        "an event has no DTSTART",
    ),
    "no such day": (GOOD.replace("20270302T100000", "20270231T100000"), "DTSTART"),
    "backwards": (GOOD.replace("20270302T110000", "20270301T110000"), "ends before it starts"),
    "before time": (GOOD.replace("20270302T100000", "00010101T000000"), "the times of an event"),
    "no such rule": (GOOD.replace("SUMMARY", "RRULE:FREQ=SOMETIMES\r\nSUMMARY"), "RRULE"),
    "a rule that is none": (GOOD.replace("SUMMARY", "RRULE:FREQ=MONTHLY;BYDAY=9MO\r\nSUMMARY"), "9MO"),
    "every second": (GOOD.replace("SUMMARY", "RRULE:FREQ=SECONDLY\r\nSUMMARY"), "repeats too often"),
    "unknown zone": (
        GOOD.replace("=Europe/Berlin:20270302T10", "=Atlantis:20270302T10"),
        "'Atlantis' is unknown",
    ),
    "huge": ("X" * (5 << 20) + "X", "longer than 5 MiB"),
    "binary": ("\x00\x01\x02\ufffd", "it is not iCalendar"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_an_unreadable_file_is_logged_once_and_the_others_count(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text, cause = MALFORMED[name]
    put(tmp_path, good=GOOD, bad=text)
    calendars = view(tmp_path)

    async def twice() -> list[Agenda]:
        span = (START - timedelta(hours=4), START + timedelta(hours=8))
        return [await calendars.busy(["primary"], *span) for _ in range(2)]

    for found in asyncio.run(twice()):
        assert [each.start for each in found.busy] == [START]
        assert found.notices == (
            "1 entry of the primary calendar could not be read, so a time that looks free may be taken.",
        )
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == 1
    assert "bad.ics" in said[0]
    assert cause in said[0]


def test_one_bad_event_of_a_file_does_not_hide_its_neighbours(tmp_path: Path) -> None:
    bad = component("DTSTART:nonsense", uid="bad")
    dense = component("DTSTART:20270101T000000Z", "DURATION:PT1S", "RRULE:FREQ=SECONDLY", uid="dense")
    weekly = event("20270223T130000", "20270223T140000", "RRULE:FREQ=WEEKLY", uid="weekly")
    single = event("20270302T100000", "20270302T110000", uid="single")
    put(tmp_path, export=calendar(bad, dense, weekly, single))
    found = agenda(tmp_path)
    assert [each.start.hour for each in found.busy] == [9, 12]
    assert found.notices[0].startswith("2 entries of the primary calendar")


ENDS = {
    "zero duration": ("20270302T150000", "PT0S", (13, 14)),
    "duration that agrees": ("20270302T150000", "PT1H", (13, 14)),
    "longer duration": ("20270302T150000", "PT2H", (13, 15)),
    "shorter duration": ("20270302T160000", "PT1H", (13, 15)),
    "negative duration": ("20270302T150000", "-PT1H", (13, 14)),
    "end at the start": ("20270302T140000", "PT1H", (13, 14)),
    "end before the start": ("20270302T120000", "PT1H", (13, 14)),
}


@pytest.mark.parametrize("name", ENDS)
def test_an_override_with_both_dtend_and_duration_moves_its_occurrence(name: str, tmp_path: Path) -> None:
    end, duration, hours = ENDS[name]
    daily = event("20270301T100000", "20270301T110000", "RRULE:FREQ=DAILY;COUNT=3", uid="daily")
    instead_of = "RECURRENCE-ID;TZID=Europe/Berlin:20270302T100000"
    moved = event("20270302T140000", end, f"DURATION:{duration}", instead_of, uid="daily")
    put(tmp_path, export=calendar(daily, moved))
    found = agenda(tmp_path)
    assert [(each.start.hour, each.end.hour) for each in found.busy] == [hours]
    assert found.notices == ()


def test_an_event_that_ends_before_it_starts_is_a_fault_even_with_a_zero_duration(tmp_path: Path) -> None:
    put(tmp_path, bad=calendar(event("20270302T100000", "20270301T110000", "DURATION:PT0S", uid="bad")))
    found = agenda(tmp_path)
    assert found.busy == ()
    assert len(found.notices) == 1


def test_an_all_day_event_with_a_duration_in_hours_keeps_its_days(tmp_path: Path) -> None:
    days = ("DTSTART;VALUE=DATE:20270302", "DTEND;VALUE=DATE:20270303", "DURATION:PT0S")
    put(tmp_path, day=calendar(component(*days, uid="day")))
    found = agenda(tmp_path)
    assert [each.all_day for each in found.busy] == [True]
    assert found.notices == ()


def test_an_event_is_created_despite_an_unreadable_file_and_the_answer_says_so(tmp_path: Path) -> None:
    put(tmp_path, bad="nonsense")
    made = asyncio.run(view(tmp_path).create(EventDraft("Fitting", START, START + timedelta(hours=1))))
    assert made.existed is False
    assert len(made.notices) == 1


def test_a_custom_zone_applies_only_to_its_file(tmp_path: Path) -> None:
    def in_office(offset: str, hour: int) -> str:
        zone = (
            "BEGIN:VTIMEZONE\r\nTZID:Office\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\n"
            f"TZOFFSETFROM:{offset}\r\nTZOFFSETTO:{offset}\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"
        )
        times = f"DTSTART;TZID=Office:20270302T{hour}0000\r\nDURATION:PT1H\r\n"
        return (
            f"BEGIN:VCALENDAR\r\n{zone}BEGIN:VEVENT\r\nUID:{offset}\r\n{times}END:VEVENT\r\nEND:VCALENDAR\r\n"
        )

    orphan = "DTSTART;TZID=Office:20270302T100000"
    orphan = f"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n{orphan}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    put(tmp_path, a=in_office("+0300", 10), b=in_office("-0200", 10), c=orphan)
    found = agenda(tmp_path)
    assert [each.start.hour for each in found.busy] == [7, 12]
    assert len(found.notices) == 1


@pytest.mark.parametrize("zone", ["W. Europe Standard Time", "/example.org/Europe/Berlin"])
def test_zone_names_of_other_programs_are_recognised(zone: str, tmp_path: Path) -> None:
    put(tmp_path, other=GOOD.replace("TZID=Europe/Berlin:2027", f"TZID={zone}:2027"))
    found = agenda(tmp_path)
    assert [each.start for each in found.busy] == [START]
    assert found.notices == ()


def test_all_day_events_use_the_calendar_zone_and_floating_times_the_deployment_zone(tmp_path: Path) -> None:
    day = component("DTSTART;VALUE=DATE:20270302", uid="day")
    floating = component("DTSTART:20270304T100000", "DTEND:20270304T110000", uid="floating")
    floats_on = component("DTSTART:20270305T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=2", uid="on")
    put(tmp_path, day=calendar(day), floating=calendar(floating), on=calendar(floats_on))
    calendars = {"primary": {"path": str(tmp_path), "zone": "Asia/Tokyo"}}
    start = datetime(2027, 3, 1, tzinfo=UTC)
    found = agenda(tmp_path, 24 * 7, start, calendars=calendars).busy
    assert [(each.start, each.all_day) for each in found] == [
        (datetime(2027, 3, 2, tzinfo=ZoneInfo("Asia/Tokyo")), True),
        (datetime(2027, 3, 4, 10, tzinfo=ZoneInfo("Europe/Berlin")), False),
        (datetime(2027, 3, 5, 10, tzinfo=ZoneInfo("Europe/Berlin")), False),
        (datetime(2027, 3, 6, 10, tzinfo=ZoneInfo("Europe/Berlin")), False),
    ]


def test_the_zone_in_an_export_determines_its_daylight_saving_changes(tmp_path: Path) -> None:
    weekly = component("DTSTART:20270323T080000Z", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;COUNT=2", uid="weekly")
    text = calendar(weekly).replace("VERSION:2.0\r\n", "VERSION:2.0\r\nX-WR-TIMEZONE:Europe/Berlin\r\n")
    put(tmp_path, export=text)
    found = agenda(tmp_path, 24 * 14, datetime(2027, 3, 22, tzinfo=UTC)).busy
    assert [each.start.hour for each in found] == [8, 7]


def test_changes_by_other_programs_are_seen_at_once(tmp_path: Path) -> None:
    put(tmp_path, one=GOOD)
    calendars = view(tmp_path)

    def hours() -> list[int]:
        span = (START - timedelta(hours=4), START + timedelta(hours=8))
        return [each.start.hour for each in asyncio.run(calendars.busy(["primary"], *span)).busy]

    assert hours() == [9]
    put(
        tmp_path,
        one=GOOD.replace("T100000", "T103000"),
        two=calendar(event("20270302T150000", "20270302T160000", uid="b")),
    )
    assert hours() == [9, 14]
    (tmp_path / "one.ics").unlink()
    (tmp_path / "two.ics").rename(tmp_path / "two.ics.bak")
    assert hours() == []


def test_a_created_event_is_readable_by_other_programs(tmp_path: Path) -> None:
    draft = EventDraft(
        "Räume, Licht; Ton\nATTENDEE:mailto:eve@example.org",
        START.astimezone(ZoneInfo("America/New_York")),
        START.astimezone(ZoneInfo("America/New_York")) + timedelta(hours=1),
        attendees=("ann@example.org", "ben@example.org"),
        description="First line\r\nEND:VEVENT\r\nlast line \x07",
    )
    asyncio.run(view(tmp_path / "new", organizer="studio@example.org").create(draft))
    (path,) = (tmp_path / "new").glob("*.ics")
    assert path.stat().st_mode & 0o077 == 0
    parsed: Any = ICalendar.from_ical(path.read_bytes())
    (entry,) = parsed.walk("VEVENT")
    assert [zone["TZID"] for zone in parsed.walk("VTIMEZONE")] == ["America/New_York"]
    assert entry["SUMMARY"] == "Räume, Licht; Ton\nATTENDEE:mailto:eve@example.org"
    assert entry["DESCRIPTION"] == "First line\nEND:VEVENT\nlast line"
    assert [str(each) for each in entry["ATTENDEE"]] == ["mailto:ann@example.org", "mailto:ben@example.org"]
    assert {each.params["RSVP"] for each in entry["ATTENDEE"]} == {"TRUE"}
    assert entry["ORGANIZER"] == "mailto:studio@example.org"
    assert entry["DTSTART"].dt == START
    assert entry["DTSTART"].params["TZID"] == "America/New_York"
    assert entry["SEQUENCE"] == 0
    assert entry["DTSTAMP"].dt.tzinfo is not None


def test_an_event_moved_by_its_owner_keeps_its_new_time(tmp_path: Path) -> None:
    draft = EventDraft("Fitting", START, START + timedelta(hours=1))
    first = asyncio.run(view(tmp_path).create(draft))
    (path,) = tmp_path.glob("*.ics")
    moved = path.read_text().replace("T100000", "T170000").replace("T110000", "T180000")
    path.unlink()
    put(tmp_path, renamed=moved)
    again = asyncio.run(view(tmp_path).create(draft))
    assert (again.uid, again.existed) == (first.uid, True)
    assert again.start == START + timedelta(hours=7)


def test_a_cancelled_event_can_be_booked_again(tmp_path: Path) -> None:
    draft = EventDraft("Fitting", START, START + timedelta(hours=1))
    asyncio.run(view(tmp_path).create(draft))
    (path,) = tmp_path.glob("*.ics")
    path.write_text(path.read_text().replace("STATUS:CONFIRMED", "STATUS:CANCELLED"))
    assert asyncio.run(view(tmp_path).create(draft)).existed is False
    assert "SEQUENCE:1" in path.read_text()
    assert len(agenda(tmp_path).busy) == 1


@pytest.mark.parametrize("user", ["../../etc", "..", "a/b", "Zoë ☎", ".hidden", "a" * 300, "", "x\x00y"])
def test_a_user_name_cannot_leave_the_folder(user: str, tmp_path: Path) -> None:
    root = tmp_path / "all" / "calendars"
    said = {"calendars": {"personal": {"path": f"{root}/{{user}}"}}}
    mine = view(tmp_path, user, **said)
    if not mine.names:
        assert user in ("..", "a" * 300, "")
        return
    draft = EventDraft("Fitting", START, START + timedelta(hours=1), calendar="personal")
    asyncio.run(mine.create(draft))
    (path,) = tmp_path.rglob("*.ics")
    assert path.parent.parent == root
    for other in ("ann", f"{user}x", user.upper() + "?"):
        span = (START, START + timedelta(hours=1))
        assert asyncio.run(view(tmp_path, other, **said).busy(["personal"], *span)).busy == ()


def test_a_personal_calendar_needs_a_user(tmp_path: Path) -> None:
    said = {"calendars": {"primary": {"path": str(tmp_path)}, "personal": {"path": f"{tmp_path}/{{user}}"}}}
    assert list(view(tmp_path, "ada", **said).names) == ["primary", "personal"]
    nobody = view(tmp_path, None, **said)
    assert list(nobody.names) == ["primary"]
    with pytest.raises(
        ToolError, match=r"There is no personal calendar for this user\. Available calendars: primary\."
    ):
        asyncio.run(nobody.busy(["personal"], START, START + timedelta(hours=1)))


def test_an_unusable_folder_is_a_failure_and_not_a_free_calendar(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("I am no folder")
    calendars, hour = view(tmp_path / "file" / "calendar"), timedelta(hours=1)
    asked: list[Any] = [
        calendars.busy(["primary"], START, START + hour),
        calendars.create(EventDraft("Fitting", START, START + hour)),
    ]
    for work in asked:
        with pytest.raises(ToolError) as caught:
            asyncio.run(work)
        assert caught.value.type is ErrorType.TRANSIENT
        assert str(tmp_path) not in caught.value.message
    assert str(tmp_path) in caplog.text


# Processes


BOOK = """
import asyncio, json, resource, signal, sys
from datetime import datetime, timedelta
from types import SimpleNamespace
from jackfield import ToolError
from jackfield_capability_types.calendar import EventDraft
from jackfield_calendar.calendars import Calendars
from jackfield.settings import parse_settings
from jackfield_calendar.settings import CalendarCapabilitySettings

folder, title, mode = sys.argv[1:]
table = {"calendars": {"primary": {"path": folder}}}
calendars = Calendars(parse_settings(CalendarCapabilitySettings, table, ""), {})
view = calendars.for_session(SimpleNamespace(user="ada"))
first = datetime.fromisoformat("2027-03-02T09:00:00+00:00")

async def book(number):
    start = first + timedelta(hours=number)
    try:
        return (await view.create(EventDraft(title, start, start + timedelta(hours=1)))).existed
    except ToolError as error:
        return error.type.value

if mode == "half":
    # The operating system ends the process when it has written so many bytes, in the middle of the file.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
print("ready", flush=True)
sys.stdin.readline()
if mode in ("once", "half"):
    print(json.dumps([asyncio.run(book(number)) for number in range(8)]), flush=True)
else:
    number = 0
    while True:
        asyncio.run(book(number))
        print(number, flush=True)
        number += 1
"""


def booker(folder: Path, title: str, mode: str = "once") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BOOK, str(folder), title, mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("go\n")
    process.stdin.flush()


def await_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout
    assert process.stdout.readline() == "ready\n"


def answers(processes: Sequence[subprocess.Popen[str]]) -> list[list[Any]]:
    for process in processes:
        await_ready(process)
    for process in processes:
        go(process)
    return [json.loads(process.communicate(timeout=60)[0]) for process in processes]


def test_only_one_of_many_processes_books_a_time(tmp_path: Path) -> None:
    found = answers([booker(tmp_path, f"Fitting {number}") for number in range(2)])
    for slot in zip(*found, strict=True):
        assert sorted(map(str, slot)) == ["CONFLICT", "False"]
    assert len(list(tmp_path.glob("*.ics"))) == 8


def test_only_one_of_many_processes_writes_the_same_event(tmp_path: Path) -> None:
    found = answers([booker(tmp_path, "Fitting") for _ in range(2)])
    for slot in zip(*found, strict=True):
        assert sorted(slot) == [False, True]
    assert len(list(tmp_path.glob("*.ics"))) == 8


def test_a_process_killed_during_a_write_leaves_every_file_intact(tmp_path: Path) -> None:
    acknowledged = 0
    for number in range(4):
        process = booker(tmp_path, f"Round {number}", "for ever")
        await_ready(process)
        go(process)
        before = len(list(tmp_path.glob("*.ics")))
        while len(list(tmp_path.glob("*.ics"))) < before + 3:
            time.sleep(0.001)
        time.sleep(number * 0.0007)
        process.send_signal(signal.SIGKILL)
        told = process.communicate()[0].split()
        acknowledged = max(acknowledged, len(told))
    names = [path for path in tmp_path.glob("*.ics") if not path.name.startswith(".")]
    for path in names:
        assert path.read_bytes().endswith(b"END:VCALENDAR\r\n")
        ICalendar.from_ical(path.read_bytes())
    span = agenda(tmp_path, 24 * 31, START)
    assert span.notices == ()
    assert span.busy[0].end - span.busy[0].start >= timedelta(hours=acknowledged)
    # The next process books despite leftovers of a dead one and removes them.
    (tmp_path / ".jackfield-unfinished-old.ics").write_bytes(b"BEGIN:VCALENDAR\r\n")
    late = EventDraft("After all", START + timedelta(days=40), START + timedelta(days=40, hours=1))
    assert asyncio.run(view(tmp_path).create(late)).existed is False
    assert list(tmp_path.glob(".jackfield-unfinished-*")) == []


def test_a_partial_file_of_a_dead_process_is_ignored(tmp_path: Path) -> None:
    process = booker(tmp_path, "Fitting", "half")
    await_ready(process)
    go(process)
    assert process.communicate()[0] == ""
    assert process.returncode == -signal.SIGXFSZ
    (unfinished,) = tmp_path.glob(".jackfield-unfinished-*")
    assert unfinished.stat().st_size == 300
    assert agenda(tmp_path) == Agenda(())
    assert answers([booker(tmp_path, "Fitting")]) == [[False] * 8]
    assert list(tmp_path.glob(".jackfield-unfinished-*")) == []


def test_a_booking_times_out_behind_a_hung_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr("jackfield_calendar.backends.folder.PATIENCE_SECONDS", 0.2)
    tmp_path.joinpath("calendar").mkdir()
    held = os.open(tmp_path / "calendar" / ".jackfield.lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        with pytest.raises(ToolError, match="another booking is taking too long") as caught:
            asyncio.run(
                view(tmp_path / "calendar").create(EventDraft("Fitting", START, START + timedelta(hours=1)))
            )
        assert caught.value.type is ErrorType.TRANSIENT
        assert caught.value.retryable
        assert not caught.value.partial_side_effects
    finally:
        os.close(held)
