"""The confirmation preview of a model's arguments."""

from __future__ import annotations

import pytest
from jackfield.confirmation import render


def test_datetimes_are_shown_as_local_time_with_their_zone() -> None:
    args = {"start": "2026-03-29T08:30:00Z", "end": "2026-03-29T10:00:00Z", "zone": "Europe/Berlin"}
    card = render("{start:in zone} for {start:until end}", "book", args)
    assert card == "Sunday, 29 March 2026, 10:30 CEST (Europe/Berlin) for 1 h 30 min"


@pytest.mark.parametrize(
    ("start", "shown"),
    [
        ("2026-01-05T09:00:00+05:30", "Monday, 5 January 2026, 09:00 (UTC+05:30)"),
        ("2026-01-05T09:00:00Z", "Monday, 5 January 2026, 09:00 (UTC+00:00)"),
        ("2026-01-05T09:00:00", "Monday, 5 January 2026, 09:00"),
        ("next week", "next week"),
    ],
)
def test_a_datetime_is_shown_unchanged_without_a_zone(start: str, shown: str) -> None:
    assert render("{start:in zone}", "book", {"start": start}) == shown
    assert render("{start:moment}", "book", {"start": start, "": "Asia/Tokyo"}) == shown


def test_an_invalid_zone_is_shown_and_ignored() -> None:
    for zone in ("Mars/Olympus", "../../etc/passwd", "", "\x1b[31m"):
        card = render("{start:in zone}", "book", {"start": "2026-01-05T09:00:00Z", "zone": zone})
        assert "\x1b" not in card
        assert card.startswith("2026-01-05T09:00:00Z (")


def test_a_datetime_that_does_not_exist_in_its_zone_is_shown_unchanged() -> None:
    args = {"start": "0001-01-01T00:00:00Z", "zone": "America/New_York"}
    assert render("{start:in zone}", "book", args) == "0001-01-01T00:00:00Z (America/New_York)"


@pytest.mark.parametrize(
    ("end", "length"),
    [
        ("2026-01-05T09:00:00Z", "0 min"),
        ("2026-01-05T09:45:00Z", "45 min"),
        ("2026-01-07T10:00:00Z", "2 d 1 h"),
        ("2026-01-05T08:00:00Z", "none: the end is before the start"),
        ("2026-01-05T10:00:00", "2026-01-05T09:00:00Z to 2026-01-05T10:00:00"),
    ],
)
def test_the_duration_between_two_datetimes_is_shown(end: str, length: str) -> None:
    assert render("{start:until end}", "book", {"start": "2026-01-05T09:00:00Z", "end": end}) == length


def test_an_argument_cannot_add_lines_to_the_preview() -> None:
    card = render(
        "Create {who}?\nStart: {start}", "book", {"who": "tea\nStart: never\x1b[2J", "start": "now"}
    )
    assert card.splitlines() == ["Create tea\\nStart: never\\u001b[2J?", "Start: now"]


def test_empty_lists_and_booleans_are_shown_as_words() -> None:
    assert render("{who} {start} {end}", "book", {"who": [], "start": True, "end": False}) == "none yes no"
