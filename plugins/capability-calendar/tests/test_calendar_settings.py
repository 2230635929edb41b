"""The settings of a deployment: defaults, and messages for invalid values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import jackfield_calendar
import pytest
from calendar_tables import read
from jackfield.offers import Services
from jackfield.settings import Settings, SettingsError
from jackfield.store import MemoryStore
from jackfield_calendar.calendars import Calendars
from jackfield_testkit import ToolTestContext

CALDAV = {"backend": "caldav", "url": "https://dav.example.org/ada/"}
GOOGLE = {"backend": "google", "calendar_id": "primary"}


def test_the_default_is_one_primary_calendar() -> None:
    (offer,) = jackfield_calendar.jackfield_capabilities()
    assert offer.unavailable(read({})) is None
    view = offer.create(read({}), Services(MemoryStore())).for_session(ToolTestContext().session)
    assert (list(view.names), view.zone, view.has_meeting_links) == (["primary"], "UTC", False)


def test_an_empty_list_of_calendars_makes_the_capability_unavailable() -> None:
    (offer,) = jackfield_calendar.jackfield_capabilities()
    assert "no calendar is set up" in str(offer.unavailable(read({"calendars": {}})))


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    heavy = "{'icalendar', 'caldav', 'httpx', 'google', 'recurring_ical_events', 'dateutil', 'lxml'}"
    asked = "import sys, jackfield_calendar; jackfield_calendar.jackfield_capabilities()"
    code = f"{asked}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def primary(**said: Any) -> dict[str, Any]:
    return {"calendars": {"primary": said}}


def test_paths_in_a_settings_file_are_relative_to_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "jackfield.toml"
    file.write_text(
        "[capabilities.calendar.calendars]\n"
        'primary = {backend = "google", calendar_id = "primary", service_account_file = "account.json"}\n'
        'team = {path = "team"}\n'
        'personal = {path = "~/calendars/{user}"}\n'
    )
    calendars = read(Settings.load(file, {}).table("capabilities", "calendar")).calendars
    assert calendars["primary"].service_account_file == str(tmp_path / "account.json")
    assert calendars["team"].path == str(tmp_path / "team")
    assert calendars["personal"].path == "~/calendars/{user}"


CALENDAR = "[capabilities.calendar]"
PRIMARY = "[capabilities.calendar.calendars.primary]"
MEETINGS = "[capabilities.calendar.meetings]"
EITHER = (
    "service_account_file: expected either this, or client_id_env, client_secret_env and refresh_token_env "
    "together"
)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"zon": "UTC"}, f"{CALENDAR} zon: unknown setting; did you mean 'zone'?"),
        (
            {"zone": "Europe/Berln"},
            f"{CALENDAR} zone: there is no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?",
        ),
        ({"zone": 1}, f"{CALENDAR} zone: expected an IANA time zone such as Europe/Berlin, got 1"),
        (
            {"organizer": "Ada"},
            f'{CALENDAR} organizer: expected an e-mail address such as "studio@example.org", or {{user}}, '
            "got 'Ada'",
        ),
        (
            {"calendars": {"primry": {}}},
            "[capabilities.calendar.calendars] primry: expected one of 'primary', 'team', 'personal', got "
            "'primry'",
        ),
        (
            {"calendars": {"primary": "folder"}},
            "[capabilities.calendar.calendars] primary: expected a table, got 'folder'",
        ),
        ({"calendars": "primary"}, f"{CALENDAR} calendars: expected a table, got 'primary'"),
        (
            primary(backend="caldev"),
            f"{PRIMARY} backend: expected one of 'folder', 'caldav', 'google', got 'caldev'",
        ),
        (primary(path=7), f"{PRIMARY} path: expected a non-empty string, got 7"),
        (primary(url="https://dav.example.org"), f"{PRIMARY} url: only used with backend = 'caldav'"),
        (
            primary(timeout_seconds=3),
            f"{PRIMARY} timeout_seconds: only used with backend = 'caldav' or 'google'",
        ),
        (primary(backend="caldav"), f"{PRIMARY} url: missing; the caldav backend needs it"),
        (
            primary(**CALDAV, timeout_seconds=0),
            f"{PRIMARY} timeout_seconds: expected a number of seconds above 0, got 0",
        ),
        (
            primary(**CALDAV, timeout_seconds=True),
            f"{PRIMARY} timeout_seconds: expected a number of seconds above 0, got true",
        ),
        (
            primary(**CALDAV, password="hunter2"),
            f"{PRIMARY} password: unknown setting; a secret does not belong in this file: put it into an "
            "environment variable, and set password_env to the name of that variable",
        ),
        (
            primary(backend="google", service_account_file="x.json"),
            f"{PRIMARY} calendar_id: missing; the google backend needs it",
        ),
        (primary(**GOOGLE), f"{PRIMARY} {EITHER}"),
        (primary(**GOOGLE, client_id_env="SET"), f"{PRIMARY} {EITHER}"),
        (
            primary(**GOOGLE, client_id_env="SET", service_account_file="x.json"),
            f"{PRIMARY} {EITHER}",
        ),
        (
            {"meetings": {"template": "https://meet.example.org/room"}},
            f"{MEETINGS} template: expected an https URL with {{id}} in it, such as "
            "\"https://meet.example.org/{id}\", got 'https://meet.example.org/room'",
        ),
        (
            {"meetings": {"template": "http://meet.example.org/{id}"}},
            f"{MEETINGS} template: expected an https URL with {{id}} in it, such as "
            "\"https://meet.example.org/{id}\", got 'http://meet.example.org/{id}'",
        ),
        (
            {"meetings": {"google_meet": True}},
            f'{MEETINGS} google_meet: needs a calendar with backend = "google"; there is none',
        ),
        (
            {
                **primary(**GOOGLE, service_account_file="x.json"),
                "meetings": {"google_meet": True, "template": "https://x.example.org/{id}"},
            },
            f"{MEETINGS} google_meet: expected either template or google_meet, not both",
        ),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(settings: Any, fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read(settings)
    assert str(raised.value) == fault


@pytest.mark.parametrize("zone", ["../../etc/passwd", "America"])
def test_a_zone_is_not_a_path(zone: str) -> None:
    with pytest.raises(SettingsError, match=f"zone: there is no time zone '{zone}'"):
        read({"zone": zone})


def test_an_unset_variable_fails_at_startup() -> None:
    settings = read(primary(**CALDAV, password_env="NOT_SET"))
    with pytest.raises(SettingsError, match="password_env: the environment variable NOT_SET is not set"):
        Calendars(settings, {"SET": "a"})


def test_a_missing_library_is_reported_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_calendar.calendars.find_spec", lambda name: None)
    with pytest.raises(
        SettingsError, match=r"needs caldav; pip install 'jackfield-capability-calendar\[caldav\]'"
    ):
        Calendars(read(primary(**CALDAV)), {})
