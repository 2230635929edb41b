"""The contract tests of a calendar, on a folder and on a real CalDAV server."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from calendar_tables import read
from jackfield_calendar.calendars import Calendars
from jackfield_capability_types.calendar import Calendar
from jackfield_testkit import CalendarContractTests, ToolTestContext
from jackfield_testkit.calendar import calendar, component
from jackfield_testkit.calendar.radicale import PASSWORD, USER, Radicale


def calendars(primary: dict[str, Any], **said: Any) -> Calendars:
    """Open the capability with one calendar."""
    settings = {"zone": "Europe/Berlin", "calendars": {"primary": primary}, **said}
    return Calendars(read(settings), {"PASSWORD_OF_ADA": PASSWORD})


class TestFolder(CalendarContractTests):
    async def create_calendar(self, folder: Path, objects: Sequence[str]) -> Calendar:
        path = folder / secrets.token_hex(4)
        path.mkdir()
        for number, text in enumerate(objects):
            (path / f"{number}.ics").write_bytes(text.encode())
        return calendars({"path": str(path)})


class TestFolderWithLinks(CalendarContractTests):
    async def create_calendar(self, folder: Path, objects: Sequence[str]) -> Calendar:
        # All in one file, like an export of another program.
        text = "".join(objects).replace("END:VCALENDAR\r\nBEGIN:VCALENDAR\r\n", "")
        (folder / "calendar").mkdir()
        if text:
            (folder / "calendar" / "export.ics").write_bytes(text.encode())
        meetings = {"template": "https://meet.example.org/{id}"}
        return calendars({"path": str(folder / "calendar")}, meetings=meetings)


class TestCalDav(CalendarContractTests):
    server: Radicale

    @pytest.fixture(autouse=True)
    def _use(self, radicale: Radicale) -> None:
        self.server = radicale

    async def create_calendar(self, folder: Path, objects: Sequence[str]) -> Calendar:
        url = self.server.make(secrets.token_hex(8), list(objects))
        return calendars(
            {
                "backend": "caldav",
                "url": url,
                "user": USER,
                "password_env": "PASSWORD_OF_ADA",
                "timeout_seconds": 30,
            }
        )

    def test_all_day_and_floating_events_are_found_in_any_server_zone(self) -> None:
        day = calendar(component("DTSTART;VALUE=DATE:20270302", uid="day"))
        floating = calendar(component("DTSTART:20270304T080000", "DURATION:PT1H", uid="floating"))
        url = self.server.make(secrets.token_hex(8), [day, floating])
        primary = {
            "backend": "caldav",
            "url": url,
            "user": USER,
            "password_env": "PASSWORD_OF_ADA",
            "timeout_seconds": 30,
        }
        tokyo = ZoneInfo("Asia/Tokyo")

        async def hour(start: datetime) -> int:
            made = calendars(primary, zone="Asia/Tokyo")
            view = made.for_session(ToolTestContext().session)
            agenda = await view.busy(["primary"], start, start + timedelta(hours=1))
            await made.close()
            return len(agenda.busy)

        # In UTC these are the evenings before.
        assert asyncio.run(hour(datetime(2027, 3, 2, 1, tzinfo=tokyo))) == 1
        assert asyncio.run(hour(datetime(2027, 3, 4, 8, tzinfo=tokyo))) == 1
        assert asyncio.run(hour(datetime(2027, 3, 3, 1, tzinfo=tokyo))) == 0
