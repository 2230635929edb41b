"""What the tool creates, what its preview shows, and what it never invents."""

from __future__ import annotations

import asyncio
import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jackfield import ErrorType, ToolError
from jackfield.confirmation import render
from jackfield.contract.manifest import ToolManifest
from jackfield.offers import Services
from jackfield.settings import parse_offer
from jackfield.store import MemoryStore
from jackfield_calendar import jackfield_capabilities
from jackfield_testkit import ToolTestContext
from jackfield_tool_calendar_create_event.handler import execute

PACKAGE = resources.files("jackfield_tool_calendar_create_event")
MANIFEST = ToolManifest.from_wire(json.loads(PACKAGE.joinpath("schema.json").read_text("utf-8")))
REVIEW = {
    "title": "Draft review",
    "start_time": "2027-03-29T12:00:00Z",
    "end_time": "2027-03-29T13:30:00Z",
    "attendees": ["ann@example.org", "ben@example.org"],
    "description": "",
    "calendar": "primary",
    "time_zone": "Europe/Berlin",
    "include_meeting_link": False,
}


def create(folder: Path, args: dict[str, Any], user: str = "ada", **said: Any) -> tuple[Any, ToolTestContext]:
    (offer,) = jackfield_capabilities()
    settings = {"calendars": {"primary": {"path": str(folder)}}, **said}
    made = offer.create(parse_offer("capabilities", offer, settings), Services(MemoryStore()))
    context = ToolTestContext(calendar=made.for_session(ToolTestContext(user=user).session))
    return asyncio.run(execute(args, context)).data, context


def test_the_manifest_matches_the_tool_table() -> None:
    assert (MANIFEST.category, MANIFEST.side_effects, MANIFEST.requires_confirmation) == (
        "action",
        "writes",
        True,
    )
    assert (MANIFEST.allowed_modes, MANIFEST.latency_budget_ms) == (("text",), 3000)
    assert MANIFEST.requires == ("calendar",)


def test_the_preview_shows_local_time_with_zone_duration_and_attendees() -> None:
    card = render(MANIFEST.preview, "calendar_create_event", REVIEW)
    assert "“Draft review” in the primary calendar" in card
    assert "Monday, 29 March 2027, 14:00 CEST (Europe/Berlin)" in card
    assert "1 h 30 min" in card
    assert "ann@example.org, ben@example.org" in card


def test_an_event_is_created_in_the_zone_of_the_user_and_audited(tmp_path: Path) -> None:
    data, context = create(tmp_path, REVIEW)
    (path,) = tmp_path.glob("*.ics")
    assert "DTSTART;TZID=Europe/Berlin:20270329T140000" in path.read_text("utf-8")
    assert context.audited == [
        ("event_created", {"uid": data["uid"], "calendar": "primary", "existed": False})
    ]


def test_the_duration_is_correct_across_a_clock_change(tmp_path: Path) -> None:
    night = {"start_time": "2027-03-28T00:30:00+01:00", "end_time": "2027-03-28T03:30:00+02:00"}
    data, _ = create(tmp_path, {**REVIEW, **night})
    assert data["duration_minutes"] == 120


def test_the_same_call_again_finds_the_event(tmp_path: Path) -> None:
    first, _ = create(tmp_path, REVIEW)
    again, _ = create(tmp_path, {**REVIEW, "start_time": "2027-03-29T14:00:00+02:00"})
    assert (first["status"], again["status"]) == ("created", "existed")
    assert {**first, "status": ""} == {**again, "status": ""}


def test_a_meeting_link_comes_from_the_provider_and_stays_the_same(tmp_path: Path) -> None:
    meetings = {"template": "https://meet.example.org/studio-{id}"}
    wanted = {**REVIEW, "include_meeting_link": True}
    first, _ = create(tmp_path, wanted, meetings=meetings)
    again, _ = create(tmp_path, wanted, meetings=meetings)
    prefix, _, room = str(first["meeting_url"]).partition("studio-")
    assert prefix == "https://meet.example.org/"
    assert len(room) >= 20
    assert again["meeting_url"] == first["meeting_url"]
    other, _ = create(tmp_path / "other", wanted, meetings=meetings)
    assert other["meeting_url"] != first["meeting_url"]
    assert create(tmp_path / "none", REVIEW, meetings=meetings)[0]["meeting_url"] is None


def test_without_a_link_provider_a_link_is_rejected_and_nothing_is_created(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="No provider of meeting links") as caught:
        create(tmp_path, {**REVIEW, "include_meeting_link": True})
    assert caught.value.type is ErrorType.PERMANENT
    assert "https://" not in f"{caught.value.message}{caught.value.suggestion}"
    assert list(tmp_path.glob("*.ics")) == []


def test_a_conflict_shows_the_time_but_not_the_event(tmp_path: Path) -> None:
    create(tmp_path, {**REVIEW, "title": "Secret"}, user="ben")
    with pytest.raises(ToolError) as caught:
        create(tmp_path, REVIEW)
    assert caught.value.type is ErrorType.CONFLICT
    assert caught.value.details == {
        "clash": {"start": "2027-03-29T14:00:00+02:00", "end": "2027-03-29T15:30:00+02:00"}
    }
    assert "Secret" not in f"{caught.value.message}{caught.value.suggestion}"


def test_a_partly_unreadable_calendar_is_reported(tmp_path: Path) -> None:
    (tmp_path / "bad.ics").write_text("nonsense")
    data, _ = create(tmp_path, REVIEW)
    assert data["notices"] == [
        "1 entry of the primary calendar could not be read, so a time that looks free may be taken."
    ]


def test_invalid_years_are_explained(tmp_path: Path) -> None:
    late = {"start_time": "9999-12-31T22:00:00Z", "end_time": "9999-12-31T23:00:00Z"}
    with pytest.raises(ToolError, match="not a date and time from 1900 to 2199"):
        create(tmp_path, {**REVIEW, **late, "time_zone": "Asia/Tokyo"})
