"""Results as people are told of them: words, names and times, and nothing that only machines need."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from jackfield_local.language.sentences import sentences, untitled
from jackfield_local.planner.telling.results import tell
from jackfield_local.planner.telling.told import Manners
from local_requests import ZONE

_EVENT = {
    "status": "created",
    "uid": "b51003e0-5f0d-4a3e-9a37-0c8d3f1f2a11@example",
    "calendar": "primary",
    "title": "Dentist",
    "start": "2026-11-16T08:00:00+01:00",
    "end": "2026-11-16T09:00:00+01:00",
    "duration_minutes": 60,
    "invited": [],
    "meeting_url": None,
}


def _manners(mode: Literal["text", "voice"] = "text") -> Manners:
    """What is told here needs no nearness of meaning: every text is as near as every other."""
    return Manners(mode, ZONE, lambda texts: np.ones((len(texts), 2), dtype=np.float32))


def _told(data: Any, mode: Literal["text", "voice"] = "text") -> str:
    return tell(data, "", _manners(mode)).text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"reason": "user_request", "say": "Goodbye!", "text_sent": False}, "Goodbye!"),
        ({"reason": "user_request", "ends_after": "current_turn", "say": None, "text_sent": False}, "Done."),
        ({"until": "2026-11-16T10:00:00Z", "scope": "user", "client_told": True, "say": None}, "Done."),
        (_EVENT, "Created: Dentist, Monday 16 November, 8:00 to 9:00."),
        ({**_EVENT, "status": "existed"}, "Already there: Dentist, Monday 16 November, 8:00 to 9:00."),
        ({"uid": "4f0c2b7e9d1a4c55", "sent": True, "mode": "current_turn"}, "Done."),
        ({"open": True}, "Open: yes."),
        ({"words": 120, "request_id": "r-1"}, "Words: 120."),
        ([], "Nothing was found."),
        ({"results": []}, "Nothing was found."),
        ({"contacts": [], "emails": []}, "Nothing was found."),
        ({"images": [{"id": "a1", "media_type": "image/png", "width": 512}], "shown": True}, "1 image."),
        (None, "Done."),
    ],
)
def test_a_result_is_told_without_what_is_for_machines(data: Any, said: str) -> None:
    assert _told(data) == said


def test_whom_an_event_invites_and_its_link_are_told_and_the_link_is_not_read_out() -> None:
    event = {**_EVENT, "invited": ["ann@example.org"], "meeting_url": "https://meet.example/1"}
    assert _told(event).endswith("9:00. Invited: ann@example.org. Meeting: https://meet.example/1.")
    assert "http" not in _told(event, "voice")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("6:45\u202fPM", "It is 6:45\u202fPM on Monday in Tokyo."),
        ("Nov 16, 2026, 6:45 PM", "It is Monday, Nov 16, 2026, 6:45 PM in Tokyo."),
        ("in 3 hours", "in 3 hours"),
    ],
)
def test_a_time_is_told_with_its_day_and_place(text: str, said: str) -> None:
    data = {"text": text, "weekday": "Monday", "timezone": "Asia/Tokyo", "locale": "en-US", "epoch_ms": 1}
    assert _told(data) == said
    assert _told({**data, "locale": "de-AT"}) == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Open at nine. Closed on Sunday.", ["Open at nine.", "Closed on Sunday."]),
        ("Bring a light, e.g. Fresnel lamps. Tidy up.", ["Bring a light, e.g. Fresnel lamps.", "Tidy up."]),
        (
            "1. Open the plan. 2. Pick an hour. It is yours. 3. Tidy up.",
            ["1. Open the plan.", "2. Pick an hour.", "It is yours.", "3. Tidy up."],
        ),
        ("# Rooms\n\n- Ask Ann\n- Take the key", ["- Ask Ann", "- Take the key"]),
        ("We met in room 12. Then we left.", ["We met in room 12. Then we left."]),
        ("# Rooms", ["# Rooms"]),
    ],
)
def test_sentences_and_steps_stay_whole(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("How to book the photo room 1. Open the plan.", "1. Open the plan."),
        ("# How to book the photo room\n\nOpen the plan.", "Open the plan."),
        ("How to book the photo room: Open the plan.", "Open the plan."),
        ("How to book the photo room is said here.", "How to book the photo room is said here."),
        ("How to book the photo room", "How to book the photo room"),
    ],
)
def test_a_title_is_not_read_as_the_beginning_of_its_text(text: str, rest: str) -> None:
    assert untitled(text, "How to book the photo room") == rest


def _records(*scores: float | None) -> dict[str, Any]:
    records = [
        {"id": f"doc:{n}", "title": f"Record {n}", "snippet": f"Fact {n}."}
        | ({} if score is None else {"score": score})
        for n, score in enumerate(scores, start=1)
    ]
    return {"results": records}


def test_only_what_fits_half_as_well_is_told_besides_the_best() -> None:
    said = _told(_records(0.9, 0.5, 0.3, 0.2))
    assert "2. Record 2 [doc:2]" in said
    assert "Record 3" not in said
    assert "Also found" not in _told(_records(0.9, 0.3))
    assert _told(_records(*[None] * 6)).endswith("4. Record 4 [doc:4]\n(2 more)")
