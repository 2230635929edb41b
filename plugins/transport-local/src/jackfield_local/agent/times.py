"""Computes dates and times from the user's words; the model never does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from functools import cached_property
from statistics import median
from typing import Any

from jackfield_language.datetimes import TimeExpression, read_time
from jackfield_language.numbers import duration, time_change
from jackfield_language.words import words

from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.tools import TEMPORAL, Tool, ToolParameter, ValueType


def ground_times(
    tool: Tool, raw: Mapping[str, Any], message: UserMessage, base: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the dates and times that the words give, for all such parameters of a tool.

    `base` holds the arguments that the words change; anything that the words do not mention stays as it is.
    """
    parameters = [each for each in tool.parameters if each.type in TEMPORAL and not each.many]
    if not parameters:
        return {}
    if (change := time_change(message.text)) is not None and base:
        moved = [each for each in parameters if each.ends or not change.ends_only]
        return _shifted(moved, base, change.length)
    # The part of the day that was said before a question still applies to an hour in the reply.
    said = f"{message.text}\n{message.before}" if message.before else message.text
    return _Times(tool, raw, said, message.now, base, day_of(base) or message.day).of(parameters)


def day_of(args: Mapping[str, Any]) -> date | None:
    """Return the first day among some arguments."""
    return next((found.date() for value in args.values() if (found := _read(value)) is not None), None)


@dataclass(frozen=True)
class _Times:
    """The times of one call."""

    tool: Tool
    raw: Mapping[str, Any]
    said: str
    now: datetime
    base: Mapping[str, Any]
    day: date | None

    @cached_property
    def whole(self) -> TimeExpression | None:
        """The time expression in the whole message."""
        return read_time(self.said, self.now, self.day)

    @property
    def zone(self) -> tzinfo:
        assert self.now.tzinfo is not None  # noqa: S101 - the agent's clock always has a zone
        return self.now.tzinfo

    def of(self, parameters: Sequence[ToolParameter]) -> dict[str, str]:
        pair = _pair(parameters)
        found = self.span(*pair) if pair is not None else {}
        single = [each for each in parameters if pair is None or each not in pair]
        for parameter in single:
            if parameter.name in self.raw or parameter.required or len(parameters) == 1:
                several = sum(each.type is parameter.type for each in single) > 1
                when = self.meant(parameter, several=several)
                if when is not None and (value := self.value(parameter, when)) is not None:
                    found[parameter.name] = value
        return found

    def meant(self, parameter: ToolParameter, *, several: bool) -> TimeExpression | None:
        """Return a parameter's time from the words that the model chose; unless `several`, from all words."""
        phrase, whole = self.raw.get(parameter.name), self.whole
        chosen = None
        if isinstance(phrase, str) and set(words(phrase)) <= set(words(self.said)):
            chosen = read_time(phrase, self.now, self.day)
        if several or chosen is None or whole is None:
            return chosen if several else chosen or whole
        days, clock = chosen.days or whole.days, whole.clock or chosen.clock
        return replace(whole, days=days, clock=clock, instant=whole.instant or chosen.instant)

    def value(self, parameter: ToolParameter, when: TimeExpression) -> str | None:
        """Return a date or time in the format of its parameter; None if the words are not exact enough."""
        begin = when.starts(self.now.date(), self.zone)
        match parameter.type:
            case ValueType.DATE:
                return None if when.days is None and when.instant is None else begin.date().isoformat()
            case ValueType.TIME:
                return f"{begin:%H:%M}" if when.exact else None
            case ValueType.DATE_OR_TIME if when.clock is None and when.instant is None:
                return begin.date().isoformat()
            case ValueType.DATE_OR_TIME:
                # Without an offset, so that a time zone among the arguments applies.
                return begin.isoformat() if when.zoned else f"{begin:%Y-%m-%dT%H:%M}"
        if (moved := _moved(when, _read(self.base.get(parameter.name)))) is not None:
            return moved.isoformat()
        return self.ahead(when).isoformat() if when.exact or _takes_days(self.tool, self.now) else None

    def span(self, begin: ToolParameter, end: ToolParameter) -> dict[str, str]:
        """Return a start and an end; the end is said, or follows from a length in the words or examples."""
        first, last = _read(self.base.get(begin.name)), _read(self.base.get(end.name))
        usual = last - first if first and last and (first.tzinfo is None) == (last.tzinfo is None) else None
        length = found.length if (found := duration(self.said)) is not None else None
        if self.whole is None:
            return {end.name: _shape(end, first + length)} if first and length else {}
        ranged = self.whole.clock is not None and self.whole.clock.end is not None
        ends = None if ranged else self.meant(end, several=True)
        starts = None if ranged else self.meant(begin, several=ends is not None)
        starts = starts or self.whole
        if (moment := _moved(starts, first)) is not None:
            return _both(begin, end, moment, moment + usual if usual is not None else None)
        if not starts.exact and not _takes_days(self.tool, self.now):
            return {}
        moment = self.ahead(starts)
        if length is not None and starts.exact:
            return _both(begin, end, moment, moment + length)
        until = starts.ends(moment.date() if starts.days is None else self.now.date(), self.zone)
        if ends is not None and ends != starts and ends.instant is None:
            # A clock time is itself the end; a day or part of a day ends when it is over.
            ends = replace(ends, days=ends.days or starts.days)
            until = (ends.starts if ends.exact else ends.ends)(moment.date(), self.zone)
        if until is None and (usual := usual or _usual_length(self.tool, begin, end, self.now)) is not None:
            until = moment + usual
        return _both(begin, end, moment, until)

    def ahead(self, when: TimeExpression) -> datetime:
        """Return the start; a clock time without a day is tomorrow's if it has passed."""
        moment = when.starts(self.now.date(), self.zone)
        passed = when.instant is None and when.days is None and when.exact and moment < self.now
        return moment + timedelta(days=1) if passed else moment


def _pair(parameters: Sequence[ToolParameter]) -> tuple[ToolParameter, ToolParameter] | None:
    moments = [each for each in parameters if each.type in (ValueType.DATE_TIME, ValueType.DATE)]
    begin = next((each for each in moments if each.starts), None)
    end = next((each for each in moments if each.ends), None)
    return (begin, end) if begin and end and begin.type is end.type else None


def _both(begin: ToolParameter, end: ToolParameter, first: datetime, last: datetime | None) -> dict[str, str]:
    found = {begin.name: _shape(begin, first)}
    return found if last is None or last < first else found | {end.name: _shape(end, last)}


def _moved(when: TimeExpression, before: datetime | None) -> datetime | None:
    """Return the previous time on another day, if only a day was said."""
    if before is None or when.days is None or when.clock is not None or when.instant is not None:
        return None
    return datetime.combine(when.days.first, before.timetz())


def _shape(parameter: ToolParameter, moment: datetime) -> str:
    return moment.date().isoformat() if parameter.type is ValueType.DATE else moment.isoformat()


def _shifted(
    parameters: Sequence[ToolParameter], base: Mapping[str, Any], moved: timedelta
) -> dict[str, str]:
    """Return all times shifted by the same amount; clock times without a date only by less than a day."""
    found = {}
    for parameter in parameters:
        value = base.get(parameter.name)
        if parameter.type is ValueType.TIME and isinstance(value, str):
            clock = _read(f"2000-01-01T{value[:5]}")
            if clock is not None and abs(moved) < timedelta(days=1):
                found[parameter.name] = f"{clock + moved:%H:%M}"
        elif (moment := _read(value)) is not None and (
            parameter.type is not ValueType.DATE or abs(moved) >= timedelta(days=1)
        ):
            found[parameter.name] = _shape(parameter, moment + moved)
    return found


def _takes_days(tool: Tool, now: datetime) -> bool:
    """Return whether an example in the guide gives only a day."""
    told = [read_time(each.says, now) for each in tool.examples]
    return any(each is not None and not each.exact for each in told)


def _usual_length(tool: Tool, begin: ToolParameter, end: ToolParameter, now: datetime) -> timedelta | None:
    """Return the usual length in the examples that give only a start."""
    lengths = []
    for example in tool.examples:
        when = read_time(example.says, now)
        ranged = when is not None and when.clock is not None and when.clock.end is not None
        first, last = _read(example.args.get(begin.name)), _read(example.args.get(end.name))
        if first and last and when is not None and when.exact and not (ranged or duration(example.says)):
            lengths.append((last - first).total_seconds())
    return timedelta(seconds=median(lengths)) if lengths else None


def _read(value: Any) -> datetime | None:
    if not isinstance(value, str) or not value[:4].isdigit():
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None
