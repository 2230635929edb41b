"""Grounding: the arguments of a call are values that the user's words give; nothing else is passed on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from jackfield_local.agent.parameters import CODES, TEMPORAL, Kind, Parameter, Tool
from jackfield_local.agent.speech import Speech
from jackfield_local.agent.texts import (
    check_text,
    guess_texts,
    introduced,
    is_brief,
    is_mostly_said,
    is_search,
)
from jackfield_local.agent.times import ground_times
from jackfield_local.agent.values import choice_is_named, find_all, find_codes, find_numbers, find_value
from jackfield_local.language.questions import is_question
from jackfield_local.language.times import read_when
from jackfield_local.language.words import stems


@dataclass(frozen=True)
class Grounded:
    """The arguments that hold, the first that is missing, and what the user named that cannot be used."""

    args: Mapping[str, Any]
    missing: Parameter | None = None
    unusable: str = ""
    """What the user named in a form that the parameter does not take, such as a name for an address."""

    guessed: frozenset[str] = frozenset()
    """The arguments that are likely rather than certain; a tool that writes must not get them."""


def ground(
    tool: Tool, hints: Mapping[str, Any], speech: Speech, base: Mapping[str, Any] | None = None
) -> Grounded:
    """The arguments of a call as the model proposes it.

    `base` are the arguments of an open card or question that the words change.
    """
    base = base or {}
    given = {name: value for name, value in hints.items() if value not in (None, "", [], {})}
    found = ground_times(tool, given, speech, base) | find_numbers(tool, given, speech, base.keys())
    plain = [each for each in tool.parameters if each.kind not in TEMPORAL]
    asked = [each for each in plain if each.name not in base or each.name in given]
    for kind in CODES - {Kind.ZONE}:
        if alike := [each for each in asked if each.kind is kind and not each.many]:
            found |= find_codes(alike, tool, given, speech)
    for parameter in plain:
        if parameter.name not in found:
            value = _value(tool, parameter, given.get(parameter.name), speech)
            if value not in (None, "", [], {}) and not _is_own_zone_again(parameter, value, speech, base):
                found[parameter.name] = value
    if base:
        found = _extended(tool, _named_choices(tool, speech) | found, base)
    else:
        _whole_question(tool, found, speech)
    _drop_echoes(tool, found)
    _drop_doubles(tool, found, speech)
    args = _valid(tool, {**base, **found})
    unusable, refused = _unusable(tool, given, args, speech)
    missing = next((each for each in tool.required if each.name not in args), refused)
    return Grounded(args, missing, unusable, _composed(tool, args, speech))


def _composed(tool: Tool, args: Mapping[str, Any], speech: Speech) -> frozenset[str]:
    """The texts that the model thought up, as their examples show that it may."""
    texts = {
        each.name: args[each.name] for each in tool.parameters if each.kind is Kind.TEXT and each.name in args
    }
    return frozenset(
        name for name, text in texts.items() if isinstance(text, str) and not is_mostly_said(text, speech)
    )


def find(tool: Tool, speech: Speech, base: Mapping[str, Any] | None = None) -> Grounded:
    """The arguments of a call that nobody proposed: what the words have of the types that a tool takes."""
    base = base or {}
    if is_search(tool):
        return Grounded({**base, tool.required[0].name: " ".join(speech.said.split())})
    found = ground_times(tool, _temporal_hints(tool, speech), speech, base)
    found |= find_numbers(tool, {}, speech, base.keys())
    for kind in CODES - {Kind.ZONE}:
        if alike := [each for each in tool.parameters if each.kind is kind and not each.many]:
            found |= find_codes(alike, tool, {}, speech)
    guessed = set()
    for parameter in tool.parameters:
        if parameter.name in found or parameter.kind in TEMPORAL | {Kind.TEXT}:
            continue
        value = _value(tool, parameter, None, speech)
        if value not in (None, "", [], {}) and not _is_own_zone_again(parameter, value, speech, base):
            found[parameter.name] = value
            if parameter.kind is Kind.IDENTIFIER and str(value) not in speech.said:
                guessed.add(parameter.name)  # The user pointed at it.
            if parameter.kind is Kind.CHOICE and not parameter.many and not choice_is_named(value, speech):
                if base.get(parameter.name) is not None:
                    del found[parameter.name]  # What was said before is surer.
                else:
                    guessed.add(parameter.name)
    texts = [each for each in tool.parameters if each.kind is Kind.TEXT and not each.many]
    exact = {each.name: value for each in texts if (value := check_text(tool, each, None, speech))}
    likely = guess_texts(tool, speech, [*found.values(), *exact.values()])
    likely = {name: value for name, value in likely.items() if name not in base or is_brief(tool, name)}
    guessed |= likely.keys() - exact.keys()
    found |= likely | exact
    args = _valid(tool, {**base, **_extended(tool, found, base)})
    missing = next((each for each in tool.required if each.name not in args), None)
    return Grounded(args, missing, guessed=frozenset(guessed & args.keys()))


def _is_own_zone_again(parameter: Parameter, value: Any, speech: Speech, base: Mapping[str, Any]) -> bool:
    """Whether a value is only the user's own time zone, where the call has another one already."""
    return parameter.kind is Kind.ZONE and parameter.name in base and value == speech.zone


def _temporal_hints(tool: Tool, speech: Speech) -> dict[str, str]:
    """A time that was said is meant for what needs one, or for the first that takes one."""
    timed = [each for each in tool.parameters if each.kind in TEMPORAL]
    first = {each.kind: each for each in reversed(timed)}
    if read_when(speech.said, speech.now) is None:
        return {}
    return {
        each.name: speech.said for each in timed if each.required or first[each.kind] is each or each.ends
    }


def _value(tool: Tool, parameter: Parameter, hint: Any, speech: Speech) -> Any:
    if parameter.kind is Kind.RECORDS:
        return _records(parameter, speech) if parameter.required else None
    find_one = check_text if parameter.kind is Kind.TEXT else find_value
    if not parameter.many:
        return find_one(tool, parameter, hint, speech)
    members = hint if isinstance(hint, list) else [hint] if hint is not None else find_all(parameter, speech)
    kept = [find_one(tool, parameter, each, speech) for each in members]
    return _unique(each for each in kept if each is not None)


def _valid(tool: Tool, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the schema takes, without those that only repeat a default."""
    kept = {}
    for name, value in args.items():
        parameter = tool.parameter(name)
        if parameter is None or not _is_valid(parameter, value):
            continue
        if parameter.required or value != parameter.schema.get("default"):
            kept[name] = value
    return kept


def _extended(tool: Tool, found: dict[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """New members of a list come to those that it has already."""
    many = {each.name for each in tool.parameters if each.many and isinstance(base.get(each.name), list)}
    return found | {name: _unique([*base[name], *found[name]]) for name in many & found.keys()}


def _unique(values: Iterable[Any]) -> list[Any]:
    """Each value once, in its order; values may be objects."""
    kept: list[Any] = []
    for value in values:
        if value not in kept:
            kept.append(value)
    return kept


def _is_valid(parameter: Parameter, value: Any) -> bool:
    try:
        return jsonschema_rs.is_valid(dict(parameter.schema), value)
    except ValueError:  # A schema that refers to something that is not there.
        return False


def _named_choices(tool: Tool, speech: Speech) -> dict[str, Any]:
    """The choices whose own names are in words that change a call, such as "make it weekly"."""
    found = {}
    for parameter in tool.parameters:
        named = [each for each in parameter.choices if choice_is_named(each, speech)]
        if parameter.kind is Kind.CHOICE and not parameter.many and len(named) == 1:
            found[parameter.name] = named[0]
    return found


def _records(parameter: Parameter, speech: Speech) -> list[Any] | None:
    records = [dict(each) for each in speech.records]
    return records if records and _is_valid(parameter, records) else None


def _whole_question(tool: Tool, found: dict[str, Any], speech: Speech) -> None:
    """A question goes to a search exactly as it was asked: each rewritten word loses evidence."""
    if not is_search(tool):
        return
    (parameter,) = tool.required
    longest = int(parameter.schema.get("maxLength") or 1000)
    said = " ".join(speech.said.split())
    # A follow-up such as "and in Rome?" only makes sense with what the model took from earlier turns.
    complete = parameter.name not in found or stems(found[parameter.name]) <= stems(said)
    if is_question(said) and complete and len(said) <= longest:
        found[parameter.name] = said


def _drop_echoes(tool: Tool, found: dict[str, Any]) -> None:
    """An optional text that only repeats another argument was not given by the user."""
    texts = {name: value.lower() for name, value in found.items() if isinstance(value, str)}
    for parameter in tool.parameters:
        value = texts.get(parameter.name)
        if parameter.kind is not Kind.TEXT or parameter.required or not value:
            continue
        if any(value in other for name, other in texts.items() if name != parameter.name):
            del found[parameter.name], texts[parameter.name]


def _drop_doubles(tool: Tool, found: dict[str, Any], speech: Speech) -> None:
    """One word of the user cannot be two required values: the one stays that examples introduce this way."""
    needed = [each for each in tool.required if each.kind is Kind.TEXT]
    texts = [each for each in needed if isinstance(found.get(each.name), str)]
    for parameter in texts:
        value = found[parameter.name]
        same = [each for each in texts if found.get(each.name) == value]
        if len(same) < 2 or speech.everything.lower().count(value.lower()) >= len(same):
            continue
        kept = [each for each in same if introduced(tool, each, speech, value)]
        for each in same:
            if len(kept) != 1 or each is not kept[0]:
                del found[each.name]
        return


def _unusable(
    tool: Tool, given: Mapping[str, Any], args: Mapping[str, Any], speech: Speech
) -> tuple[str, Parameter | None]:
    """A name that the user gave where an address or an identifier is needed."""
    for parameter in tool.parameters:
        if parameter.kind not in (Kind.EMAIL, Kind.IDENTIFIER, Kind.URL) or parameter.name not in given:
            continue
        hint, kept = given[parameter.name], args.get(parameter.name, [])
        members = hint if isinstance(hint, list) else [hint]
        usable = {str(each).lower() for each in (kept if isinstance(kept, list) else [kept])}
        for each in map(str, members):
            said = speech.verbatim(each.partition("@")[0])
            if each.lower() not in usable and len(usable) < len(members) and said:
                return said, parameter
    return "", None
