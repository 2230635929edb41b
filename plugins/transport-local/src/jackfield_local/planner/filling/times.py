"""Times as arguments: a beginning and an end, a moment, a length, a zone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from statistics import median
from typing import Any

from jackfield_local.language.durations import duration
from jackfield_local.language.times import When, read_when
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.places import HERE, Place
from jackfield_local.planner.reading.kinds import Kind, unit_seconds
from jackfield_local.planner.reading.tool import Parameter, Tool

_AN_HOUR = timedelta(hours=1)


def bounds(parameters: Sequence[Parameter]) -> tuple[Parameter, Parameter] | None:
    """The parameters for a beginning and an end, if there are both."""
    moments = [each for each in parameters if each.kind is Kind.MOMENT]
    begin = next((each for each in moments if each.begins), None)
    end = next((each for each in moments if each.ends), None)
    return (begin, end) if begin and end else None


def bounded(tool: Tool, heard: Heard, pair: tuple[Parameter, Parameter]) -> dict[str, str]:
    """A beginning and, where it is known, an end."""
    when = heard.when
    if when is None or (not when.exact and not when.clock and not _takes_days(tool, heard.now)):
        return {}
    today, zone = heard.now.date(), _zone(heard.now)
    if when.exact and when.days is None and when.starts(today, zone) < heard.now:
        today += timedelta(days=1)  # An hour that is over is meant for the day that comes.
    begin, end = when.starts(today, zone), when.ends(today, zone)
    if end is None:
        # Where days will do, an hour is looked at as a piece of its day.
        usual = _usual_length(tool, pair, heard.now) or (_AN_HOUR if _takes_days(tool, heard.now) else None)
        length = heard.length.length if heard.length else usual
        end = begin + length if length else None
    args = {pair[0].name: begin.isoformat()}
    return args | ({pair[1].name: end.isoformat()} if end else {})


def moment(parameter: Parameter, heard: Heard, *, zoned: bool) -> str | None:
    """A single moment; without an offset where another argument says the zone, and a day alone as a day."""
    when = heard.when
    if when is None:
        return None
    begin = when.starts(heard.now.date(), _zone(heard.now))
    if parameter.schema.get("format") == "date-time":
        return begin.isoformat()
    if not when.exact and when.clock is None:
        return begin.date().isoformat()
    return (
        begin.replace(tzinfo=None).isoformat(timespec="minutes")
        if zoned and not when.zoned
        else begin.isoformat()
    )


def length(parameter: Parameter, heard: Heard) -> float | int | None:
    """A length of time in the unit that the parameter's name says."""
    if heard.length is None:
        return None
    amount = heard.length.length.total_seconds() / unit_seconds(parameter.name)
    return round(amount) if parameter.schema.get("type") == "integer" or amount.is_integer() else amount


def zones(parameters: Sequence[Parameter], heard: Heard, own: str) -> dict[str, str]:
    """The zone in which something is meant, and the one in which it is wanted."""
    wanted = [each for each in parameters if each.kind is Kind.ZONE]
    source = next((each for each in wanted if each.source), None)
    target = next((each for each in wanted if not each.source), None)
    meant, asked = _sides(heard) if source else (None, next(iter(heard.zones), None))
    args: dict[str, Any] = {}
    if target is not None:
        args[target.name] = (asked.name or own) if asked else own
    if source is not None and heard.when is not None and heard.when.exact and not heard.when.zoned:
        args[source.name] = (meant.name or own) if meant else own
    return {name: zone for name, zone in args.items() if zone}


def _sides(heard: Heard) -> tuple[Place | None, Place | None]:
    """The place whose clock was read, which stands behind the hour, and the place that is asked about."""
    hour = heard.when.clock_span if heard.when else None
    if hour is None:
        return None, next(iter(heard.zones), None)
    between = [(each, heard.request[hour.end : each.span.start].strip().lower()) for each in heard.zones]
    close = ("", "in", "at", "time in", "o'clock in", "over in")
    meant = next((each for each, gap in between if each.span.start >= hour.end and gap in close), None)
    asked = next((each for each in reversed(heard.zones) if each is not meant), None)
    if meant is not None and asked is None:
        return meant, Place(HERE, meant.span)
    return meant, asked


def _takes_days(tool: Tool, now: datetime) -> bool:
    """Whether its examples are content with a day; without examples, it is."""
    told = [read_when(each.says, now) for each in tool.guide.examples]
    timed = [each for each in told if each is not None]
    return not timed or any(not each.exact for each in timed)


def _usual_length(tool: Tool, pair: tuple[Parameter, Parameter], now: datetime) -> timedelta | None:
    """How long it lasts in examples that say only when it begins."""
    lengths = []
    for example in tool.guide.examples:
        when = read_when(example.says, now)
        if when is None or not when.exact or duration(example.says) or _has_end(when):
            continue
        try:
            begin, end = (datetime.fromisoformat(str(example.args.get(each.name))) for each in pair)
        except ValueError:
            continue
        lengths.append((end - begin).total_seconds())
    return timedelta(seconds=median(lengths)) if lengths else None


def _has_end(when: When) -> bool:
    return when.clock is not None and when.clock.end is not None


def _zone(now: datetime) -> tzinfo:
    assert now.tzinfo is not None  # noqa: S101 - the planner's clock always has a zone
    return now.tzinfo
