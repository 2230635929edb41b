"""The contract tests of the tool, on a real calendar in a folder."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import pytest
from jackfield import Mode, ToolContext
from jackfield.offers import Services
from jackfield.settings import parse_offer
from jackfield.store import MemoryStore
from jackfield_calendar import jackfield_capabilities
from jackfield_testkit import Example, ToolContractTests, ToolTestContext
from jackfield_testkit.calendar import calendar, event

LUNCH = calendar(event("20260302T120000", "20260302T130000", uid="lunch"))
DENTIST = {
    "title": "Dentist",
    "start_time": "2026-03-02T08:00:00+01:00",
    "end_time": "2026-03-02T09:00:00+01:00",
}


class TestCalendarCreateEvent(ToolContractTests):
    tool_id = "calendar_create_event"
    place: Path

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.place = tmp_path

    def context(self, mode: Mode) -> ToolContext:
        # Each run has its own calendar, so that runs do not conflict.
        folder = Path(mkdtemp(dir=self.place))
        (folder / "lunch.ics").write_bytes(LUNCH.encode())
        (offer,) = jackfield_capabilities()
        settings = {"zone": "Europe/Berlin", "calendars": {"primary": {"path": str(folder)}}}
        made = offer.create(parse_offer("capabilities", offer, settings), Services(MemoryStore()))
        return ToolTestContext(mode, calendar=made.for_session(ToolTestContext(mode).session))

    examples = (
        Example(
            DENTIST,
            data=lambda data: (
                data["status"] == "created"
                and data["start"] == "2026-03-02T08:00:00+01:00"
                and data["duration_minutes"] == 60
                and data["invited"] == []
                and data["meeting_url"] is None
                and data["zone"] == "Europe/Berlin"
            ),
            name="an appointment",
        ),
        Example(
            {
                **DENTIST,
                "attendees": ["ann@example.org"],
                "description": "Teeth.",
                "time_zone": "America/New_York",
            },
            data=lambda data: data["start"] == "2026-03-02T02:00:00-05:00",
            name="in the user's zone",
        ),
        Example(
            {**DENTIST, "start_time": "2026-03-02T12:30:00+01:00", "end_time": "2026-03-02T13:30:00+01:00"},
            error="CONFLICT",
        ),
        Example({**DENTIST, "include_meeting_link": True}, error="PERMANENT", name="a link nobody makes"),
        Example({**DENTIST, "calendar": "team"}, error="PERMANENT", name="not set up"),
        Example({**DENTIST, "title": "  "}, error="PERMANENT", name="blank"),
        Example({**DENTIST, "time_zone": "Europe/Berln"}, error="PERMANENT", name="no such zone"),
        Example({**DENTIST, "end_time": DENTIST["start_time"]}, error="PERMANENT", name="no length"),
        Example({**DENTIST, "end_time": "2027-03-02T09:00:00+01:00"}, error="PERMANENT", name="a year"),
        Example({**DENTIST, "title": ""}, error="VALIDATION"),
        Example({**DENTIST, "title": "x" * 201}, error="VALIDATION"),
        Example({**DENTIST, "attendees": ["Ann"]}, error="VALIDATION"),
        Example({**DENTIST, "attendees": [f"a{n}@example.org" for n in range(51)]}, error="VALIDATION"),
        Example({**DENTIST, "start_time": "tomorrow"}, error="VALIDATION"),
    )
