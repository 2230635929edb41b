"""Dates and times formatted for a locale with Babel, which the first call imports."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from babel import Locale

Part = Literal["both", "date", "time"]
_LocaleStyle = Literal["full", "long", "medium", "short"]
_Unit = Literal["second", "minute", "hour", "day", "month", "year"]

_DAY = 86_400
# Units of a distance, each with its upper limit in seconds. Babel itself says "in 1 week" for six days.
_UNITS: tuple[tuple[float, _Unit], ...] = (
    (60, "second"),
    (90 * 60, "minute"),
    (36 * 3600, "hour"),
    (60 * _DAY, "day"),
    (730 * _DAY, "month"),
    (math.inf, "year"),
)

# Typographic spaces, which cause problems in speech engines and string comparisons.
_PLAIN_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " "})


class _NamedOffset(tzinfo):
    """A zone at one instant, with daylight saving as in CLDR.

    The tz database models the Irish winter as negative daylight saving. Babel only checks whether there is
    any, and would say Greenwich Mean Time in July and Irish Standard Time in January.
    """

    def __init__(self, moment: datetime, zone: ZoneInfo) -> None:
        self.key = zone.key
        self._offset = moment.utcoffset()
        self._summer = _is_summer_time(moment, zone)

    def utcoffset(self, _: datetime | None, /) -> timedelta | None:
        return self._offset

    def dst(self, _: datetime | None, /) -> timedelta:
        return timedelta(hours=1) if self._summer else timedelta(0)

    def tzname(self, _: datetime | None, /) -> str:
        return self.key


def _is_summer_time(moment: datetime, zone: ZoneInfo) -> bool:
    saving = moment.dst() or timedelta(0)
    if saving:
        return saving > timedelta(0)
    halves = (datetime(moment.year, month, 1, tzinfo=zone) for month in (1, 7))
    return any((half.dst() or timedelta(0)) < timedelta(0) for half in halves)


def format_datetime(moment: datetime, zone: ZoneInfo, style: str, part: Part, locale: Locale) -> str:
    """Format a date-time in a style other than relative."""
    from babel.dates import format_date, format_time, get_datetime_format

    if style == "iso":
        return {"both": iso(moment), "date": moment.date().isoformat(), "time": iso(moment)[11:]}[part]
    date_style = cast("_LocaleStyle", "full" if style == "spoken" else style)
    time_style = cast("_LocaleStyle", "short" if style == "spoken" else style)
    named = _NamedOffset(moment, zone)
    day = format_date(moment, date_style, locale=locale)
    clock = format_time(moment.replace(tzinfo=named), time_style, tzinfo=named, locale=locale)
    # Joined here rather than by Babel's format_datetime, which has only one style for both.
    joined = str(get_datetime_format(date_style, locale=locale)).replace("'", "")
    text = {"both": joined.replace("{0}", clock).replace("{1}", day), "date": day, "time": clock}[part]
    return plain(text)


def format_day(day: date, style: str, locale: Locale) -> str:
    """Format a date in a style other than relative."""
    from babel.dates import format_date

    if style == "iso":
        return day.isoformat()
    return plain(
        format_date(day, cast("_LocaleStyle", "full" if style == "spoken" else style), locale=locale)
    )


def format_distance(distance: timedelta, days_away: int, locale: Locale) -> str:
    """Format the distance from now; whole days are counted on the calendar rather than in hours."""
    seconds = abs(distance.total_seconds())
    unit = next(unit for limit, unit in _UNITS if seconds < limit)
    return _format_delta(timedelta(days=days_away) if unit == "day" else distance, unit, locale)


def format_days_away(days_away: int, locale: Locale) -> str:
    """Format the distance of a date from today."""
    unit = next(unit for limit, unit in _UNITS if abs(days_away) * _DAY < limit)
    return _format_delta(timedelta(days=days_away), unit if unit in ("month", "year") else "day", locale)


def _format_delta(delta: timedelta, unit: _Unit, locale: Locale) -> str:
    from babel.dates import format_timedelta

    # An infinite threshold prevents Babel from choosing a larger unit than the given one.
    return plain(
        format_timedelta(delta, granularity=unit, threshold=math.inf, add_direction=True, locale=locale)
    )


def weekday(day: date, locale: Locale) -> str:
    """Return the name of the weekday in a locale."""
    from babel.dates import format_date

    return format_date(day, "EEEE", locale=locale)


def zone_name(moment: datetime, zone: ZoneInfo, locale: Locale) -> str:
    """Return the name of a zone in a locale at that time, with daylight saving."""
    from babel.dates import get_timezone_name

    return plain(get_timezone_name(moment.replace(tzinfo=_NamedOffset(moment, zone)), locale=locale))


def iso(moment: datetime) -> str:
    """Return ISO 8601, with a fraction only if there is one."""
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")


def plain(text: str) -> str:
    """Return the text with ordinary spaces only."""
    return text.translate(_PLAIN_SPACES)
