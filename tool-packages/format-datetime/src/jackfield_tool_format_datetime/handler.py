"""Words a moment or a day for a zone and a locale."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from jackfield import ToolContext, ToolResponse, ok

from jackfield_tool_format_datetime import moments, wording
from jackfield_tool_format_datetime.arguments import ArgumentError
from jackfield_tool_format_datetime.locales import calendar_note, find_locale, tag_of
from jackfield_tool_format_datetime.zones import caution, find_zone

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from babel import Locale

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Wish(NamedTuple):
    """The arguments apart from the moment itself, looked up."""

    source: ZoneInfo | None
    zone: ZoneInfo
    locale: Locale
    style: str
    part: wording.Part
    now: datetime

    @property
    def today(self) -> date:
        return moments.in_zone(self.now, self.zone).date()


class _Answer(NamedTuple):
    """A result and what has to be said about it."""

    data: dict[str, Any]
    notes: tuple[str | None, ...]


def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:  # noqa: ARG001 - needs no capability
    """Answer one call; a plain function, because data of locales and zones is read from disk on first use."""
    try:
        return ok(_answer(args))
    except ArgumentError as error:
        return error.response()
    except OverflowError:
        return ArgumentError(
            "datetime",
            "In that time zone the moment lies outside the years 1 to 9999.",
            "Keep a day's distance from both ends, or give the date alone.",
        ).response()


def _answer(args: dict[str, Any]) -> dict[str, Any]:
    zone = find_zone(args["timezone"], "timezone")
    source = find_zone(args["from_timezone"], "from_timezone") if "from_timezone" in args else None
    locale, locale_note = find_locale(args["locale"])
    wish = _Wish(source, zone, locale, args["style"], args["include"], _now(args.get("now"), zone))
    given = _given(args["datetime"], wish)
    answer = _moment(given, wish) if isinstance(given, datetime) else _day(given, wish)
    notes = (locale_note, source and caution(source), caution(zone), *answer.notes)
    said = [note for note in dict.fromkeys(notes) if note]
    return {**answer.data, "notes": said} if said else answer.data


def _now(text: str | None, zone: ZoneInfo) -> datetime:
    if text is None:
        return datetime.now(UTC)
    given = moments.parse(text, "now")
    if not isinstance(given, datetime):
        raise ArgumentError("now", "now needs a time of day.", "Write 2026-03-08T14:30:00Z, or leave it out.")
    moment = given if given.tzinfo else moments.settle(given, zone).moment
    # In UTC, because Python subtracts two date-times of one zone by the clock, blind to its changes.
    return moment.astimezone(UTC)


def _given(text: str, wish: _Wish) -> date | datetime:
    if text.strip().casefold() == "now":
        return moments.in_zone(wish.now, wish.source or wish.zone)
    return moments.parse(text, "datetime")


def _moment(given: datetime, wish: _Wish) -> _Answer:
    if given.tzinfo:
        settled = moments.Settled(given, _overruled(given, wish.source))
    else:
        settled = moments.settle(given, wish.source or wish.zone)
    moment = moments.in_zone(settled.moment, wish.zone)
    data: dict[str, Any] = {
        "text": "",
        "iso": wording.iso(moment),
        "weekday": wording.weekday(moment, wish.locale),
        "timezone": wish.zone.key,
        "timezone_name": wording.zone_name(moment, wish.zone, wish.locale),
        "utc_offset": moments.offset_of(moment),
        "epoch_ms": (moment - _EPOCH) // timedelta(milliseconds=1),
        "locale": tag_of(wish.locale),
    }
    if wish.style == "relative":
        data["days_away"] = (moment.date() - wish.today).days
        data["text"] = wording.word_distance(moment - wish.now, data["days_away"], wish.locale)
    else:
        data["text"] = wording.word_moment(moment, wish.zone, wish.style, wish.part, wish.locale)
    said_already = settled.note and wish.source in (None, wish.zone)
    repeated = None if said_already else moments.repeated_note(moment, wish.zone)
    return _Answer(data, (settled.note, repeated, _calendar_note(wish)))


def _overruled(given: datetime, source: ZoneInfo | None) -> str | None:
    if source is None or moments.in_zone(given, source).utcoffset() == given.utcoffset():
        return None
    return (
        f"The datetime has an offset of its own, UTC{moments.offset_of(given)}; from_timezone was not used."
    )


def _day(day: date, wish: _Wish) -> _Answer:
    if wish.part == "time":
        raise ArgumentError("datetime", f"{day} has no time of day.", "Add one, as in 2026-03-08T14:30.")
    data: dict[str, Any] = {
        "text": "",
        "iso": day.isoformat(),
        "weekday": wording.weekday(day, wish.locale),
        "locale": tag_of(wish.locale),
    }
    if wish.style == "relative":
        data["days_away"] = (day - wish.today).days
        data["text"] = wording.word_days_away(data["days_away"], wish.locale)
    else:
        data["text"] = wording.word_day(day, wish.style, wish.locale)
    kept = "A day without a time is the same in every zone; it was not converted." if wish.source else None
    return _Answer(data, (kept, _calendar_note(wish)))


def _calendar_note(wish: _Wish) -> str | None:
    names_a_year = wish.style not in ("iso", "relative") and wish.part != "time"
    return calendar_note(wish.locale) if names_a_year else None
