"""The last call with something changed: "tomorrow instead", "and in Tokyo?", "no, at 11"."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from jackfield_local.language.numbers import NUMBER
from jackfield_local.language.spans import without
from jackfield_local.language.times import When
from jackfield_local.language.words import content, words
from jackfield_local.planner.choosing.chooser import CERTAIN, CLEAR, Weighed
from jackfield_local.planner.deciding.moves import Call
from jackfield_local.planner.filling import times
from jackfield_local.planner.filling.answers import says_only_values
from jackfield_local.planner.filling.texts import cut, names_it
from jackfield_local.planner.filling.written import only_written
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.requests import corrected, corrects, is_order, seeks, subject, wish
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.tool import Parameter, Tool
from jackfield_local.planner.remembered import Made, Remembered, day_of

_APART = 0.2
_BRIEF = 4
_FOLLOWING = re.compile(
    r"^(?:and|what about|how about|or|then|instead)\b|\binstead[.?!]*$",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:it|its|they|them|their|he|she|him|her|his)\b", re.IGNORECASE)
_LINKS = re.compile(r"\b(?:instead|then|and|or)\b", re.IGNORECASE)
_BY_FORM = frozenset((Kind.MOMENT, Kind.LENGTH, Kind.EMAIL))
_ADDING = re.compile(r"^(?:and|also|plus)\b|\b(?:add|invite|include|too|as well)\b", re.IGNORECASE)
_AN_HOUR = re.compile(rf"(?:{NUMBER}|\d{{1,2}}[:.]\d{{2}})[.!]*", re.IGNORECASE)

Fill = Callable[[Tool, Heard], dict[str, Any]]


def follow(heard: Heard, remembered: Remembered, weighed: Sequence[Weighed], fill: Fill) -> Call | None:
    """The last call with what was said anew; nothing where the words are no such change."""
    if remembered.referred(heard.request) is not None:
        return None
    last = Made(remembered.last_tool, remembered.last_args, remembered.made)
    for made in (last, *reversed(remembered.earlier)):
        tool = next((each for each in weighed if each.tool.id == made.tool and not each.beyond), None)
        if tool is not None and (call := _asked_on(heard, made, tool, weighed[0])) is not None:
            return call
        if tool is not None and (call := _anew(heard, made, tool, weighed[0], fill)) is not None:
            return call
    return None


def _asked_on(heard: Heard, made: Made, last: Weighed, best: Weighed) -> Call | None:
    """The last search with a word more: "and on Fridays?", "who leads it?"."""
    if not last.tool.is_open:
        return None
    words_for_it, rest = last.tool.required[0], _FOLLOWING.sub("", heard.request).strip(" ?!.")
    before = str(made.args.get(words_for_it.name, ""))
    if _FOLLOWING.match(heard.request) and says_only_values(replace(heard, text=rest)):
        sought = f"{before} {rest}"
    elif _PRONOUN.search(rest) and seeks(heard.request) and (best.tool is last.tool or best.score < CLEAR):
        sought = f"{subject(_PRONOUN.sub('', rest))} {before}"
    else:
        return None
    sought = cut(" ".join(sought.split()), [words_for_it.schema.get("maxLength", len(sought))])
    return Call(last.tool, {**made.args, words_for_it.name: sought}, heard.text)


def _anew(heard: Heard, made: Made, last: Weighed, best: Weighed, fill: Fill) -> Call | None:
    led = corrects(heard.request) or bool(_FOLLOWING.search(heard.request))
    brief = len(words(heard.request)) <= _BRIEF
    short = brief and not seeks(heard.request) and not _names_another(heard)
    values = says_only_values(replace(heard, text=_LINKS.sub("", corrected(heard.request))))
    if not (led or short) or (not (brief or values) and _is_rival(best, last)):
        return None
    if values and not any(each.kind in _BY_FORM for each in last.tool.parameters):
        return None
    heard = replace(_about_the_same(heard, last.tool), spoken_of=day_of(made.args))
    changed = _said(last.tool, fill(last.tool, heard), heard)
    if not _differs(last.tool, changed, heard, made.args) or (short and not led and last.tool.is_open):
        return None
    args = {**made.args, **changed, **_moved(last.tool, changed, heard, made.args)}
    return Call(last.tool, args, heard.text, remark=made.standing)


def _names_another(heard: Heard) -> bool:
    """Whether something new is ordered, however briefly: "book Yoga on Friday"."""
    values = [*(heard.when.spans if heard.when else ()), *([heard.length.span] if heard.length else ())]
    return is_order(heard.request) and bool(content(wish(without(heard.request, values))))


def _is_rival(best: Weighed, last: Weighed) -> bool:
    return best.tool is not last.tool and best.score > CERTAIN and best.score - last.score > _APART


def _about_the_same(heard: Heard, tool: Tool) -> Heard:
    """An hour alone is meant for the day that was spoken of; a bare number after a "no" is an hour."""
    rest = corrected(heard.request)
    timed = any(each.kind is Kind.MOMENT for each in tool.parameters)
    text = f"at {rest}" if timed and rest != heard.request and _AN_HOUR.fullmatch(rest) else heard.text
    return replace(heard, text=text, same_day=True)


def _said(tool: Tool, changed: Mapping[str, Any], heard: Heard) -> dict[str, Any]:
    """What was said anew: no zone that is filled in unsaid, no text that is but the rest of the words."""
    unsaid = {each.name for each in tool.parameters if each.kind is Kind.ZONE} if not heard.zones else set()
    if not (tool.is_open or names_it(heard)):
        unsaid |= {each.name for each in tool.parameters if each.kind in (Kind.TEXT, Kind.NAME)}
    return {name: value for name, value in changed.items() if name not in unsaid}


def _differs(tool: Tool, changed: Mapping[str, Any], heard: Heard, before: Mapping[str, Any]) -> bool:
    """Whether a value changed that is told by its form, rather than by being the rest of the words."""
    return any(
        each.name in changed and changed[each.name] != before.get(each.name)
        for each in tool.parameters
        if each.kind not in (Kind.RECORDS, Kind.OBJECT)
        if each.kind is not Kind.WRITTEN or only_written(tool, heard)
    ) or (times.bounds(tool.parameters) is not None and bool(heard.length or heard.when))


def _moved(tool: Tool, changed: Mapping[str, Any], heard: Heard, before: Mapping[str, Any]) -> dict[str, Any]:
    """What goes with a change: the end with the beginning, and what was listed with what is added."""
    found: dict[str, Any] = {}
    for each in tool.parameters:
        old, new = before.get(each.name), changed.get(each.name)
        if each.many and isinstance(old, list) and isinstance(new, list) and _ADDING.search(heard.request):
            found[each.name] = [*old, *(value for value in new if value not in old)]
    pair = times.bounds(tool.parameters)
    if pair is None:
        return found
    if heard.when is not None and heard.when.clock is None and pair[0].name not in changed:
        return found | _on_another_day(pair, heard.when, before)
    return found | _as_long(pair, {**before, **changed}, heard, before)


def _on_another_day(
    pair: tuple[Parameter, Parameter], when: When, before: Mapping[str, Any]
) -> dict[str, Any]:
    """The same hours on the day that was named."""
    found = {}
    for each in pair:
        try:
            old = datetime.fromisoformat(before[each.name])
        except (KeyError, TypeError, ValueError):
            return {}
        days = (when.days.first - datetime.fromisoformat(before[pair[0].name]).date()) if when.days else None
        found[each.name] = (old + days).isoformat() if days is not None else before[each.name]
    return found


def _as_long(
    pair: tuple[Parameter, Parameter], args: Mapping[str, Any], heard: Heard, before: Mapping[str, Any]
) -> dict[str, Any]:
    begin, end = (each.name for each in pair)
    if heard.when is not None and heard.when.exact is False:
        return {}
    if heard.when is not None and heard.when.clock is not None and heard.when.clock.end is not None:
        return {}
    try:
        first, old, last = (
            datetime.fromisoformat(each) for each in (args[begin], before[begin], before[end])
        )
    except (KeyError, TypeError, ValueError):
        return {}
    length = heard.length.length if heard.length else last - old
    return {end: (first + length).isoformat()}
