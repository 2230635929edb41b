"""What a deployment says under `[capabilities.calendar]`, read once and refused where it makes no sense."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any
from zoneinfo import ZoneInfo

from jackfield.settings import SettingsError
from jackfield_capability_types.calendar import CALENDARS

from jackfield_calendar.zones import find_zone

HERE = "capabilities.calendar"

_COMMON = {"backend": str, "zone": str, "organizer": str}

BACKENDS: Mapping[str, Mapping[str, type]] = {
    "folder": {"path": str},
    "caldav": {"url": str, "user": str, "password_env": str, "timeout_seconds": float},
    "google": {
        "calendar_id": str,
        "service_account_file": str,
        "subject": str,
        "client_id_env": str,
        "client_secret_env": str,
        "refresh_token_env": str,
        "timeout_seconds": float,
        "api_url": str,
        "token_url": str,
    },
}
"""The settings of each backend, besides those of every calendar."""

_WANTED = {
    "caldav": ("url",),
    "google": ("calendar_id",),
}
_KINDS: Mapping[type, str] = {
    str: "a text",
    float: "a number of seconds",
    bool: "true or false",
    dict: "a table",
}
_ADDRESS = re.compile(r"(?:\{user\}|[^\s@<>,;:\"]+@[^\s@<>,;:\"]+)")


@dataclass(frozen=True, slots=True)
class CalendarSettings:
    """One calendar: which backend holds it, and what that needs to know."""

    name: str
    backend: str
    zone: ZoneInfo
    organizer: str | None
    options: Mapping[str, Any]

    @property
    def per_user(self) -> bool:
        """Whether every user has one of their own."""
        said = (*self.options.values(), self.organizer)
        return any("{user}" in value for value in said if isinstance(value, str))


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that is set up."""

    zone: ZoneInfo
    calendars: Mapping[str, CalendarSettings] = field(default_factory=dict)
    meeting_template: str | None = None
    google_meet: bool = False


def read(settings: Mapping[str, Any]) -> Configuration:
    """The settings of the capability; with none at all, a folder that holds the primary calendar."""
    _check(HERE, settings, {"zone": str, "organizer": str, "calendars": dict, "meetings": dict})
    zone = _zone(HERE, settings.get("zone", "UTC"))
    organizer = _organizer(HERE, settings.get("organizer"))
    tables = settings.get("calendars", {"primary": {}})
    if unknown := [name for name in tables if name not in CALENDARS]:
        raise SettingsError(
            f"[{HERE}.calendars.{unknown[0]}]: tools know the calendars {', '.join(CALENDARS)} and no other"
            f"{_meant(unknown[0], CALENDARS)}"
        )
    calendars = {name: _calendar(name, tables[name], zone, organizer) for name in CALENDARS if name in tables}
    template, google_meet = _meetings(settings.get("meetings", {}), calendars)
    return Configuration(zone, calendars, template, google_meet)


def _calendar(name: str, said: Any, zone: ZoneInfo, organizer: str | None) -> CalendarSettings:
    where = f"{HERE}.calendars.{name}"
    if not isinstance(said, Mapping):
        raise SettingsError(f'[{where}] is a table, e.g. backend = "folder" in [{where}]')
    backend = said.get("backend", "folder")
    if backend not in BACKENDS:
        raise SettingsError(
            f"[{where}] backend is {backend!r}; it is one of {', '.join(BACKENDS)}"
            f"{_meant(str(backend), BACKENDS)}"
        )
    _check(where, said, {**_COMMON, **BACKENDS[backend]})
    for wanted in _WANTED.get(backend, ()):
        if not said.get(wanted):
            raise SettingsError(f"[{where}] names no {wanted}, which the {backend} backend needs")
    if said.get("timeout_seconds", 1) <= 0:
        raise SettingsError(f"[{where}] timeout_seconds is a number of seconds above 0")
    options = {key: value for key, value in said.items() if key not in _COMMON}
    if backend == "folder":
        options.setdefault("path", f"calendars/{name}" + ("/{user}" if name == "personal" else ""))
    return CalendarSettings(
        name,
        backend,
        _zone(where, said["zone"]) if "zone" in said else zone,
        _organizer(where, said.get("organizer")) or organizer,
        options,
    )


def _meetings(said: Mapping[str, Any], calendars: Mapping[str, CalendarSettings]) -> tuple[str | None, bool]:
    where = f"{HERE}.meetings"
    _check(where, said, {"template": str, "google_meet": bool})
    template, google_meet = said.get("template"), said.get("google_meet", False)
    if template is not None:
        if google_meet:
            raise SettingsError(f"[{where}] takes template or google_meet, not both")
        if not re.fullmatch(r"https://[^\s{}]+\{id\}[^\s{}]*", template):
            raise SettingsError(
                f'[{where}] template is an https address with {{id}} in it, e.g. "https://meet.example.org/{{id}}"'
            )
    if google_meet and not any(each.backend == "google" for each in calendars.values()):
        raise SettingsError(f'[{where}] google_meet needs a calendar with backend = "google"; there is none')
    return template, google_meet


def _check(where: str, said: Mapping[str, Any], known: Mapping[str, type]) -> None:
    for key, value in said.items():
        if key not in known:
            others = f"; there are {', '.join(known)}"
            raise SettingsError(f"[{where}] has no setting {key!r}{_meant(key, known) or others}")
        kind = known[key]
        accepted = (int, float) if kind is float else Mapping if kind is dict else kind
        # To Python true is the number 1, to whoever wrote the setting it is not.
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise SettingsError(f"[{where}] {key} is {_KINDS[kind]}, not {value!r}")


def _meant(name: str, known: Any) -> str:
    close = get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _zone(where: str, name: str) -> ZoneInfo:
    try:
        return find_zone(name)
    except LookupError as error:
        raise SettingsError(f"[{where}] zone: {error}") from None


def _organizer(where: str, said: str | None) -> str | None:
    if said is not None and not _ADDRESS.fullmatch(said):
        raise SettingsError(
            f'[{where}] organizer is an e-mail address, e.g. "studio@example.org", not {said!r}'
        )
    return said
