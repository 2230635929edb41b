"""The capability `calendar`, which tools use as `ctx.calendar`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CapabilityOffer, Services

if TYPE_CHECKING:
    from jackfield_calendar.calendars import Calendars
    from jackfield_calendar.settings import CalendarCapabilitySettings

__all__ = ["jackfield_capabilities"]


@hookimpl
def jackfield_capabilities() -> list[CapabilityOffer]:
    """Offer the capability under the name `calendar`."""
    from jackfield_calendar.settings import CalendarCapabilitySettings

    return [
        CapabilityOffer(
            "calendar", _create, CalendarCapabilitySettings.unavailable, CalendarCapabilitySettings
        )
    ]


def _create(settings: CalendarCapabilitySettings, services: Services) -> Calendars:  # noqa: ARG001
    # The build lists the offers of every plugin; only a host needs the libraries that read iCalendar.
    from jackfield_calendar.calendars import Calendars

    return Calendars(settings)
