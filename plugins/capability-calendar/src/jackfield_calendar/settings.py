"""The settings of the capability: `[capabilities.calendar]` and the tables in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from jackfield.datetimes import find_zone
from jackfield.settings import EnvironmentVariable, Format, Help, HttpUrl, NonEmpty, PathText, Seconds

CalendarName = Literal["primary", "team", "personal"]
_NAMES: tuple[CalendarName, ...] = ("primary", "team", "personal")

PLACE = "capabilities.calendar"

_ADDRESS = re.compile(r"(?:\{user\}|[^\s@<>,;:\"]+@[^\s@<>,;:\"]+)")
_TEMPLATE = re.compile(r"https://[^\s{}]+\{id\}[^\s{}]*")

_COMMON = frozenset({"backend", "zone", "organizer"})
_OF_BACKEND: Mapping[str, frozenset[str]] = {
    "folder": frozenset({"path"}),
    "caldav": frozenset({"url", "user", "password_env", "timeout_seconds"}),
    "google": frozenset(
        {"calendar_id", "service_account_file", "subject", "client_id_env", "client_secret_env"}
        | {"refresh_token_env", "timeout_seconds", "api_url", "token_url"}
    ),
}
_REQUIRED = {"caldav": "url", "google": "calendar_id"}
_TOKENS = ("client_id_env", "client_secret_env", "refresh_token_env")


def _address(value: str) -> str:
    if not _ADDRESS.fullmatch(value):
        raise ValueError
    return value


def _template(value: str) -> str:
    if not _TEMPLATE.fullmatch(value):
        raise ValueError
    return value


Zone = Annotated[ZoneInfo, Format("an IANA time zone such as Europe/Berlin", find_zone)]
Address = Annotated[str, Format('an e-mail address such as "studio@example.org", or {user}', _address)]


@dataclass(frozen=True, slots=True)
class CalendarSettings:
    """One calendar: its backend and the backend's settings."""

    backend: Annotated[Literal["folder", "caldav", "google"], Help("Where the calendar is stored.")] = (
        "folder"
    )
    zone: Annotated[
        Zone | None,
        Help("IANA time zone for this calendar's days.", default="the capability's"),
    ] = None
    organizer: Annotated[
        Address | None,
        Help("Organizer's e-mail address, or `{user}`.", default="the capability's"),
    ] = None
    path: Annotated[
        Annotated[NonEmpty, PathText()] | None,
        Help(
            "`folder`: the directory. It is created on first use and is readable only by its owner.",
            default="`calendars/NAME`, and `calendars/personal/{user}` for `personal`",
        ),
    ] = None
    url: Annotated[
        HttpUrl | None, Help("`caldav`, required: the address of the calendar itself, not of the server.")
    ] = None
    user: Annotated[str | None, Help("`caldav`: the user name for the login.")] = None
    password_env: Annotated[
        EnvironmentVariable | None,
        Help(
            "`caldav`: the environment variable that holds the password; use an app password if the server "
            "supports them."
        ),
    ] = None
    calendar_id: Annotated[
        NonEmpty | None, Help("`google`, required: the id of the calendar, `primary` or an address.")
    ] = None
    service_account_file: Annotated[
        Annotated[NonEmpty, PathText()] | None,
        Help("`google`: the JSON key of a service account that the calendar is shared with."),
    ] = None
    subject: Annotated[
        NonEmpty | None,
        Help("`google`: the user that the service account acts for, if the domain allows it."),
    ] = None
    client_id_env: Annotated[
        EnvironmentVariable | None,
        Help("`google`, instead of a service account: the environment variable with the OAuth client's id."),
    ] = None
    client_secret_env: Annotated[
        EnvironmentVariable | None,
        Help("`google`: the environment variable with the OAuth client's secret."),
    ] = None
    refresh_token_env: Annotated[
        EnvironmentVariable | None,
        Help(
            "`google`: the environment variable with a user's refresh token for the scope "
            "`https://www.googleapis.com/auth/calendar`."
        ),
    ] = None
    timeout_seconds: Annotated[
        Seconds | None,
        Help("`caldav` and `google`: the total time limit for one request.", default="`5`"),
    ] = None
    api_url: Annotated[
        HttpUrl | None, Help("`google`: a different API address, such as a proxy.", default="Google's")
    ] = None
    token_url: Annotated[
        HttpUrl | None,
        Help(
            "`google`: a different token endpoint for refresh tokens; a service account's file "
            "names its own.",
            default="Google's",
        ),
    ] = None

    def __post_init__(self) -> None:
        if faults := [*self._faults()]:
            raise ValueError("\n".join(faults))

    def _faults(self) -> Iterator[str]:
        known = _COMMON | _OF_BACKEND[self.backend]
        for name in (each.name for each in fields(self) if each.name not in known):
            if getattr(self, name) is not None:
                others = [backend for backend, names in _OF_BACKEND.items() if name in names]
                yield f"{name}: only used with backend = {' or '.join(map(repr, others))}"
        required = _REQUIRED.get(self.backend)
        if required and getattr(self, required) is None:
            yield f"{required}: missing; the {self.backend} backend needs it"
        if self.backend == "google":
            tokens = [name for name in _TOKENS if getattr(self, name) is not None]
            if (self.service_account_file is None) == (not tokens) or len(tokens) not in (0, len(_TOKENS)):
                yield (
                    "service_account_file: expected either this, or client_id_env, client_secret_env and "
                    "refresh_token_env together"
                )

    def of_backend(self) -> dict[str, Any]:
        """The settings of the backend that are set."""
        values = {name: getattr(self, name) for name in _OF_BACKEND[self.backend]}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class MeetingsSettings:
    """`[capabilities.calendar.meetings]`: the source of meeting links."""

    template: Annotated[
        Annotated[
            str, Format('an https URL with {id} in it, such as "https://meet.example.org/{id}"', _template)
        ]
        | None,
        Help(
            "An https URL with `{id}` for servers such as Jitsi Meet, where any name opens a room; the id "
            "has 144 random bits."
        ),
    ] = None
    google_meet: Annotated[
        bool, Help("Let Google create the link for events in calendars with the `google` backend.")
    ] = False

    def __post_init__(self) -> None:
        if self.template is not None and self.google_meet:
            raise ValueError("google_meet: expected either template or google_meet, not both")


@dataclass(frozen=True, slots=True)
class CalendarCapabilitySettings:
    """`[capabilities.calendar]`"""

    zone: Annotated[
        Zone,
        Help(
            "IANA time zone for answers, all-day events, and new events without their own zone. "
            "Floating times always use it."
        ),
    ] = field(default_factory=lambda: ZoneInfo("UTC"))
    organizer: Annotated[
        Address | None,
        Help(
            "Organizer's e-mail address, or `{user}` for the user's own. Without one, an event lists its "
            "attendees, but no invitations are sent."
        ),
    ] = None
    calendars: Annotated[
        Mapping[CalendarName, CalendarSettings],
        Help(
            "A table for each calendar that tools can use: `primary`, `team`, `personal`.",
            default="`primary`, in a folder",
        ),
    ] = field(default_factory=lambda: {"primary": CalendarSettings()})
    meetings: Annotated[MeetingsSettings, Help("Where links to video calls come from.")] = MeetingsSettings()

    def __post_init__(self) -> None:
        backends = {calendar.backend for calendar in self.calendars.values()}
        if self.meetings.google_meet and "google" not in backends:
            raise ValueError('meetings.google_meet: needs a calendar with backend = "google"; there is none')

    def unavailable(self) -> str | None:
        """Return the reason why there is no calendar, as a clause; None if there is one."""
        if self.calendars:
            return None
        return f"no calendar is set up: add a table [{PLACE}.calendars.primary]"


@dataclass(frozen=True, slots=True)
class CalendarConfiguration:
    """One calendar with all defaults filled in."""

    name: str
    backend: str
    zone: ZoneInfo
    organizer: str | None
    options: Mapping[str, Any]
    """The settings of the backend."""

    @property
    def per_user(self) -> bool:
        """True if every user has their own calendar."""
        values = (*self.options.values(), self.organizer)
        return any("{user}" in value for value in values if isinstance(value, str))


def configured_calendars(settings: CalendarCapabilitySettings) -> dict[str, CalendarConfiguration]:
    """Return the calendars of a deployment by name, in the order in which tools see them."""
    calendars: dict[str, CalendarConfiguration] = {}
    for name in _NAMES:
        calendar = settings.calendars.get(name)
        if calendar is None:
            continue
        options = calendar.of_backend()
        if calendar.backend == "folder":
            options.setdefault("path", f"calendars/{name}" + ("/{user}" if name == "personal" else ""))
        zone, organizer = calendar.zone or settings.zone, calendar.organizer or settings.organizer
        calendars[name] = CalendarConfiguration(name, calendar.backend, zone, organizer, options)
    return calendars
