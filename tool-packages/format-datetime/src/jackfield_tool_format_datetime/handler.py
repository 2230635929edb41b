"""Formats a date or date-time for a zone and a locale."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from jackfield import ToolContext, ToolResponse, ok

from jackfield_tool_format_datetime import datetimes, formats
from jackfield_tool_format_datetime.errors import ArgumentError
from jackfield_tool_format_datetime.locales import calendar_note, find_locale, tag_of
from jackfield_tool_format_datetime.zones import caution, find_zone

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from babel import Locale

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Request(NamedTuple):
    """The resolved arguments apart from the date and time."""

    source: ZoneInfo | None
    zone: ZoneInfo
    locale: Locale
    style: str
    part: formats.Part
    now: datetime

    @property
    def today(self) -> date:
        return datetimes.in_zone(self.now, self.zone).date()


class _Result(NamedTuple):
    """A result and its notes."""

    data: dict[str, Any]
    notes: tuple[str | None, ...]


def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:  # noqa: ARG001 - needs no capability
    """Format the date and time; not async, because locale and zone data is read from disk on first use."""
    try:
        return ok(_answer(args))
    except ArgumentError as error:
        return error.response()
    except OverflowError:
        return ArgumentError(
            "datetime",
            "In that time zone, the date is outside the years 1 to 9999.",
            "Stay at least one day away from both ends, or give only the date.",
        ).response()


def _answer(args: dict[str, Any]) -> dict[str, Any]:
    zone = find_zone(args["timezone"], "timezone")
    source = find_zone(args["from_timezone"], "from_timezone") if "from_timezone" in args else None
    locale, locale_note = find_locale(args["locale"])
    request = _Request(source, zone, locale, args["style"], args["include"], _now(args.get("now"), zone))
    given = _given(args["datetime"], request)
    answer = _moment(given, request) if isinstance(given, datetime) else _day(given, request)
    notes = (locale_note, source and caution(source), caution(zone), *answer.notes)
    said = [note for note in dict.fromkeys(notes) if note]
    return {**answer.data, "notes": said} if said else answer.data


def _now(text: str | None, zone: ZoneInfo) -> datetime:
    if text is None:
        return datetime.now(UTC)
    given = datetimes.parse(text, "now")
    if not isinstance(given, datetime):
        raise ArgumentError("now", "now needs a time of day.", "Write 2026-03-08T14:30:00Z, or leave it out.")
    moment = given if given.tzinfo else datetimes.resolve(given, zone).moment
    # In UTC, because Python subtracts two times of the same zone by the wall clock and ignores clock changes.
    return moment.astimezone(UTC)


def _given(text: str, request: _Request) -> date | datetime:
    if text.strip().casefold() == "now":
        return datetimes.in_zone(request.now, request.source or request.zone)
    return datetimes.parse(text, "datetime")


def _moment(given: datetime, request: _Request) -> _Result:
    if given.tzinfo:
        resolved = datetimes.ResolvedTime(given, _overruled(given, request.source))
    else:
        resolved = datetimes.resolve(given, request.source or request.zone)
    moment = datetimes.in_zone(resolved.moment, request.zone)
    data: dict[str, Any] = {
        "text": "",
        "iso": formats.iso(moment),
        "weekday": formats.weekday(moment, request.locale),
        "timezone": request.zone.key,
        "timezone_name": formats.zone_name(moment, request.zone, request.locale),
        "utc_offset": datetimes.offset_of(moment),
        "epoch_ms": (moment - _EPOCH) // timedelta(milliseconds=1),
        "locale": tag_of(request.locale),
    }
    if request.style == "relative":
        data["days_away"] = (moment.date() - request.today).days
        data["text"] = formats.format_distance(moment - request.now, data["days_away"], request.locale)
    else:
        data["text"] = formats.format_datetime(
            moment, request.zone, request.style, request.part, request.locale
        )
    said_already = resolved.note and request.source in (None, request.zone)
    repeated = None if said_already else datetimes.repeated_note(moment, request.zone)
    return _Result(data, (resolved.note, repeated, _calendar_note(request)))


def _overruled(given: datetime, source: ZoneInfo | None) -> str | None:
    if source is None or datetimes.in_zone(given, source).utcoffset() == given.utcoffset():
        return None
    return f"The datetime has its own offset, UTC{datetimes.offset_of(given)}; from_timezone was not used."


def _day(day: date, request: _Request) -> _Result:
    if request.part == "time":
        raise ArgumentError("datetime", f"{day} has no time of day.", "Add one, as in 2026-03-08T14:30.")
    data: dict[str, Any] = {
        "text": "",
        "iso": day.isoformat(),
        "weekday": formats.weekday(day, request.locale),
        "locale": tag_of(request.locale),
    }
    if request.style == "relative":
        data["days_away"] = (day - request.today).days
        data["text"] = formats.format_days_away(data["days_away"], request.locale)
    else:
        data["text"] = formats.format_day(day, request.style, request.locale)
    kept = "A day without a time is the same in every zone; it was not converted." if request.source else None
    return _Result(data, (kept, _calendar_note(request)))


def _calendar_note(request: _Request) -> str | None:
    names_a_year = request.style not in ("iso", "relative") and request.part != "time"
    return calendar_note(request.locale) if names_a_year else None
