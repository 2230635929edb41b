"""The calendar capability: what tools find under `ctx.calendar`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, PluginSettings, Services

if TYPE_CHECKING:
    from jackfield_calendar.calendars import Calendars

__all__ = ["jackfield_capabilities"]


@hookimpl
def jackfield_capabilities() -> list[CapabilityOffer]:
    """Offer the capability under the name `calendar`."""
    return [CapabilityOffer("calendar", _create, _unavailable)]


def _create(settings: PluginSettings, services: Services) -> Calendars:  # noqa: ARG001
    # The build asks every plugin what it offers; reading iCalendar is for those who serve it.
    from jackfield_calendar.calendars import Calendars
    from jackfield_calendar.configuration import read

    return Calendars(read(settings))


def _unavailable(settings: PluginSettings) -> str | None:
    if settings.get("calendars", True):
        return None
    return "no calendar is set up: add a table [capabilities.calendar.calendars.primary]"
