"""The capability `calendar`: the configured calendars, opened on first use."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from importlib.util import find_spec

from jackfield.contract.context import SessionView
from jackfield.settings import SettingsError

from jackfield_calendar.backend import Backend
from jackfield_calendar.session import SessionCalendars, encoded, filled
from jackfield_calendar.settings import (
    PLACE,
    CalendarCapabilitySettings,
    CalendarConfiguration,
    configured_calendars,
)

MOST_OPEN = 1000
"""The maximum number of open calendars, if every user has one."""


class Calendars:
    """The configured calendars of all users."""

    def __init__(self, settings: CalendarCapabilitySettings, environ: Mapping[str, str] = os.environ) -> None:
        self._settings = settings
        self._calendars = configured_calendars(settings)
        self._environ = environ
        self._open: dict[tuple[str, str | None], Backend] = {}
        self._making = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        for calendar in self._calendars.values():
            _check_installed(calendar)
            _check_secrets(calendar, environ)

    def for_session(self, session: SessionView) -> SessionCalendars:
        """Return the calendars of a session; personal ones only if the user is known."""
        known = session.user is not None and encoded(session.user) is not None
        calendars = {name: each for name, each in self._calendars.items() if known or not each.per_user}
        return SessionCalendars(self._settings, session.user, calendars, self._backend)

    async def close(self) -> None:
        """Close files and connections."""
        backends = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(backend.close() for backend in backends), *self._closing)

    async def _backend(self, name: str, user: str | None) -> Backend:
        calendar = self._calendars[name]
        key = (name, user if calendar.per_user else None)
        async with self._making:
            backend = self._open.pop(key, None)
            if backend is None:
                # In a thread, because the first calendar of a backend imports libraries and reads keys.
                backend = await asyncio.to_thread(self._make, calendar, key[1])
            # Least recently used first.
            self._open[key] = backend
        if len(self._open) > MOST_OPEN:
            self._let_go(self._open.pop(next(iter(self._open))))
        return backend

    def _let_go(self, backend: Backend) -> None:
        closing = asyncio.ensure_future(backend.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _make(self, calendar: CalendarConfiguration, user: str | None) -> Backend:
        zones = (calendar.zone, self._settings.zone)
        if calendar.backend == "google":
            from jackfield_calendar.backends.google import GoogleCalendar

            raw = frozenset({"calendar_id", "subject"})
            return GoogleCalendar(
                calendar.name,
                filled(calendar.options, user, raw=raw),
                self._environ,
                meet=self._settings.meetings.google_meet,
            )
        if calendar.backend == "caldav":
            from jackfield_calendar.backends.caldav import CalDavCalendar

            raw = frozenset({"user"})
            options = filled(calendar.options, user, raw=raw)
            return CalDavCalendar(calendar.name, options, self._environ, zones)
        from jackfield_calendar.backends.folder import FolderCalendar

        return FolderCalendar(calendar.name, filled(calendar.options, user)["path"], zones)


_LIBRARIES = {"caldav": ("caldav",), "google": ("httpx", "google.auth")}


def _check_installed(calendar: CalendarConfiguration) -> None:
    for library in _LIBRARIES.get(calendar.backend, ()):
        try:
            found = find_spec(library)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise SettingsError(
                f"[{PLACE}.calendars.{calendar.name}] backend: {calendar.backend!r} needs {library}; "
                f"pip install 'jackfield-capability-calendar[{calendar.backend}]'"
            )


def _check_secrets(calendar: CalendarConfiguration, environ: Mapping[str, str]) -> None:
    """Check at startup that every named environment variable is set."""
    named = {key: value for key, value in calendar.options.items() if key.endswith("_env")}
    for key, variable in named.items():
        if not environ.get(variable):
            raise SettingsError(
                f"[{PLACE}.calendars.{calendar.name}] {key}: the environment variable {variable} is not set"
            )
