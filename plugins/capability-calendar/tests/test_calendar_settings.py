"""What a deployment may say: what works without a word, and sentences for what makes no sense."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import jackfield_calendar
import pytest
from jackfield.offers import Services
from jackfield.settings import SettingsError
from jackfield.store import MemoryStore
from jackfield_calendar.calendars import Calendars
from jackfield_calendar.configuration import BACKENDS, read
from jackfield_testkit import ToolTestContext

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "calendar.md").read_text("utf-8") if DOCS.is_dir() else ""
needs_pages = pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are in the repository only")
CALDAV = {"backend": "caldav", "url": "https://dav.example.org/ada/"}
GOOGLE = {"backend": "google", "calendar_id": "primary"}


def test_without_settings_there_is_a_primary_calendar_and_no_other() -> None:
    (offer,) = jackfield_calendar.jackfield_capabilities()
    assert offer.unavailable({}) is None
    view = offer.create({}, Services(MemoryStore())).for_session(ToolTestContext().session)
    assert (list(view.names), view.zone, view.has_meeting_links) == (["primary"], "UTC", False)


def test_an_empty_list_of_calendars_makes_the_capability_unavailable() -> None:
    (offer,) = jackfield_calendar.jackfield_capabilities()
    assert "no calendar is set up" in str(offer.unavailable({"calendars": {}}))


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    heavy = "{'icalendar', 'caldav', 'httpx', 'google', 'recurring_ical_events', 'dateutil', 'lxml'}"
    asked = "import sys, jackfield_calendar; jackfield_calendar.jackfield_capabilities()"
    code = f"{asked}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def primary(**said: Any) -> dict[str, Any]:
    return {"calendars": {"primary": said}}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"zon": "UTC"}, r"\[capabilities\.calendar\] has no setting 'zon'; did you mean 'zone'\?"),
        (
            {"zone": "Europe/Berln"},
            r"zone: there is no time zone 'Europe/Berln'; did you mean Europe/Berlin\?",
        ),
        ({"zone": "../../etc/passwd"}, "there is no time zone"),
        ({"zone": "America"}, "there is no time zone 'America'"),
        ({"zone": 1}, "zone is a text, not 1"),
        ({"organizer": "Ada"}, "organizer is an e-mail address"),
        ({"calendars": {"primry": {}}}, r"calendars\.primry\].*did you mean 'primary'\?"),
        ({"calendars": {"primary": "folder"}}, r"\[capabilities\.calendar\.calendars\.primary\] is a table"),
        ({"calendars": "primary"}, "calendars is a table"),
        (primary(backend="caldev"), r"one of folder, caldav, google; did you mean 'caldav'\?"),
        (primary(path=7), "path is a text, not 7"),
        (
            primary(url="https://dav.example.org"),
            r"has no setting 'url'; there are backend, zone, organizer, path",
        ),
        (primary(backend="caldav"), "names no url, which the caldav backend needs"),
        (primary(**CALDAV, timeout_seconds=0), "timeout_seconds is a number of seconds above 0"),
        (primary(**CALDAV, timeout_seconds=True), "timeout_seconds is a number of seconds, not True"),
        (primary(backend="google"), "names no calendar_id"),
        ({"meetings": {"template": "https://meet.example.org/room"}}, "an https address with {id} in it"),
        ({"meetings": {"template": "http://meet.example.org/{id}"}}, "an https address"),
        ({"meetings": {"google_meet": True}}, "google_meet needs a calendar with backend"),
        (
            {
                **primary(**GOOGLE),
                "meetings": {"google_meet": True, "template": "https://x.example.org/{id}"},
            },
            "template or google_meet, not both",
        ),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_with_a_sentence(settings: Any, sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        read(settings)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            primary(**CALDAV, password_env="NOT_SET"),
            "password_env names the variable NOT_SET, which is not set",
        ),
        (primary(**GOOGLE), "either service_account_file, or client_id_env"),
        (primary(**GOOGLE, client_id_env="SET"), "either service_account_file, or client_id_env"),
        (
            primary(**GOOGLE, client_id_env="SET", service_account_file="x.json"),
            "either service_account_file",
        ),
    ],
)
def test_credentials_that_are_missing_stop_the_start(settings: Any, sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        Calendars(read(settings), {"SET": "a"})


def test_a_library_that_is_missing_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_calendar.calendars.find_spec", lambda name: None)
    with pytest.raises(
        SettingsError, match=r"needs caldav: pip install 'jackfield-capability-calendar\[caldav\]'"
    ):
        Calendars(read(primary(**CALDAV)), {})


@needs_pages
def test_every_setting_is_documented() -> None:
    named = {name for settings in BACKENDS.values() for name in settings}
    named |= {"backend", "zone", "organizer", "template", "google_meet"}
    assert [name for name in sorted(named) if f"| `{name}` |" not in PAGE] == []
