"""The contract tests of the tool, on a real calendar in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from jackfield import Mode, ToolContext
from jackfield.offers import Services
from jackfield.settings import parse_offer
from jackfield.store import MemoryStore
from jackfield_calendar import jackfield_capabilities
from jackfield_testkit import Example, ToolContractTests, ToolTestContext
from jackfield_testkit.calendar import calendar, event

STANDUP = event(
    "20260105T150000", "20260105T160000", "RRULE:FREQ=WEEKLY;BYDAY=TU", uid="standup", title="Standup"
)
AFTERNOON = {"start_date": "2026-01-13T12:00:00Z", "end_date": "2026-01-13T17:00:00Z"}


class TestCalendarGetAvailability(ToolContractTests):
    tool_id = "calendar_get_availability"
    folder: Path

    @pytest.fixture(autouse=True)
    def _calendar(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        (tmp_path / "standup.ics").write_bytes(calendar(STANDUP).encode())

    def context(self, mode: Mode) -> ToolContext:
        (offer,) = jackfield_capabilities()
        table = {"calendars": {"primary": {"path": str(self.folder)}}}
        made = offer.create(parse_offer("capabilities", offer, table), Services(MemoryStore()))
        context = ToolTestContext(mode)
        return ToolTestContext(mode, calendar=made.for_session(context.session))

    examples = (
        Example(
            AFTERNOON,
            data={
                "date_range": {"start": "2026-01-13T12:00:00+00:00", "end": "2026-01-13T17:00:00+00:00"},
                "existing_events": [
                    {
                        "start": "2026-01-13T14:00:00+00:00",
                        "end": "2026-01-13T15:00:00+00:00",
                        "status": "busy",
                        "calendar": "primary",
                        "all_day": False,
                        "title": None,
                    }
                ],
                "available_slots": [
                    {
                        "start": "2026-01-13T12:00:00+00:00",
                        "end": "2026-01-13T14:00:00+00:00",
                        "duration_minutes": 120,
                    },
                    {
                        "start": "2026-01-13T15:00:00+00:00",
                        "end": "2026-01-13T17:00:00+00:00",
                        "duration_minutes": 120,
                    },
                ],
                "summary": "1 busy period, 2 available slots (240 minutes in all)",
                "zone": "UTC",
                "complete": True,
            },
            name="an afternoon",
        ),
        Example(
            {**AFTERNOON, "include_details": True, "time_zone": "Europe/Berlin"},
            data=lambda data: (
                data["existing_events"][0]["title"] == "Standup"
                and data["existing_events"][0]["attendees"] == 0
                and data["existing_events"][0]["start"] == "2026-01-13T15:00:00+01:00"
            ),
            name="with details in the user's zone",
        ),
        Example(
            {**AFTERNOON, "min_duration_minutes": 121},
            data=lambda data: (
                data["available_slots"] == []
                and data["summary"] == "1 busy period, 0 available slots (0 minutes in all)"
            ),
            name="no slot that is long enough",
        ),
        Example(
            {"start_date": "2026-03-01T00:00:00Z", "end_date": "2026-04-01T00:00:00Z"},
            data=lambda data: len(data["existing_events"]) == 5,
            name="the longest range",
        ),
        Example(
            {"start_date": "2026-03-01T00:00:00Z", "end_date": "2026-04-01T00:01:00Z"},
            error="PERMANENT",
            name="too long",
        ),
        Example(
            {"start_date": AFTERNOON["end_date"], "end_date": AFTERNOON["start_date"]}, error="PERMANENT"
        ),
        Example({"start_date": AFTERNOON["end_date"], "end_date": AFTERNOON["end_date"]}, error="PERMANENT"),
        Example({**AFTERNOON, "calendars": ["team"]}, error="PERMANENT", name="not set up"),
        Example({**AFTERNOON, "time_zone": "Europe/Berln"}, error="PERMANENT", name="no such zone"),
        Example({**AFTERNOON, "time_zone": "../../../etc/passwd"}, error="PERMANENT", name="not a path"),
        Example({**AFTERNOON, "calendars": []}, error="VALIDATION"),
        Example({**AFTERNOON, "calendars": ["holiday"]}, error="VALIDATION"),
        Example({**AFTERNOON, "min_duration_minutes": 14}, error="VALIDATION"),
        Example({**AFTERNOON, "min_duration_minutes": 481}, error="VALIDATION"),
        Example({**AFTERNOON, "start_date": "2026-01-13"}, error="VALIDATION", name="a day"),
        Example({**AFTERNOON, "start_date": "2026-01-13T12:00:00"}, error="VALIDATION", name="no offset"),
    )
