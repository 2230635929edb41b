"""Grounding: the arguments of a call, checked against the user's words; what was not said is not passed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from jackfield_local.agent.parameters import CODES, TEMPORAL, Kind, Parameter, Tool
from jackfield_local.agent.speech import Speech
from jackfield_local.agent.times import ground_times
from jackfield_local.agent.values import (
    choice_is_named,
    choice_is_said,
    ground_codes,
    ground_numbers,
    ground_value,
    handed_over,
    is_handed_over,
    is_search,
    led_by,
    patterned,
    quoted_text,
    word_before,
)
from jackfield_local.language.questions import is_question
from jackfield_local.language.words import words


@dataclass(frozen=True)
class Grounded:
    """The arguments that hold, the first that is missing, and what the user named that cannot be used."""

    args: Mapping[str, Any]
    missing: Parameter | None = None
    unusable: str = ""
    """What the user named in a form that the parameter does not take, such as a name for an address."""


def ground(
    tool: Tool, raw: Mapping[str, Any], speech: Speech, base: Mapping[str, Any] | None = None
) -> Grounded:
    """The arguments of a call; `base` are those of an open card or question that the words change."""
    base = base or {}
    given = {name: value for name, value in raw.items() if value not in (None, "", [], {})}
    found: dict[str, Any] = ground_times(tool, given, speech, base)
    plain = [each for each in tool.parameters if each.kind not in TEMPORAL]
    found |= ground_numbers(tool, given, speech, base.keys())
    asked = [each for each in plain if each.name not in base or each.name in given]
    for kind in CODES - {Kind.ZONE}:
        if alike := [each for each in asked if each.kind is kind and not each.many]:
            found |= ground_codes(alike, given, speech)
    for parameter in plain:
        if parameter.name not in found:
            value = _grounded(tool, parameter, given.get(parameter.name), speech)
            if value not in (None, "", [], {}):
                found[parameter.name] = value
    if base:
        found = _named_choices(tool, speech) | found
    else:
        _whole_question(tool, found, speech)
    _drop_echoes(tool, found)
    _drop_doubles(tool, found, speech)
    args = {name: value for name, value in {**base, **found}.items() if _is_valid(tool, name, value)}
    for each in tool.parameters:
        if not each.required and args.get(each.name) == each.schema.get("default"):
            args.pop(each.name, None)
    unusable, refused = _unusable(tool, given, args, speech)
    missing = next((each for each in tool.required if each.name not in args), refused)
    return Grounded(args, missing, unusable)


def _grounded(tool: Tool, parameter: Parameter, value: Any, speech: Speech) -> Any:
    if parameter.kind is Kind.RECORDS:
        return _records(parameter, speech) if parameter.required else None
    if parameter.kind is Kind.OBJECT:
        inner = Tool(tool.id, tool.description, tool.guide, parameter.inner)
        return dict(ground(inner, value, speech).args) if isinstance(value, Mapping) else None
    if parameter.kind is Kind.ZONE and value is None:
        return speech.zone or None
    if value is None:
        return _unasked(tool, parameter, speech) if parameter.required else None
    if parameter.many:
        members = value if isinstance(value, list) else [value]
        kept = [ground_value(tool, parameter, each, speech) for each in members]
        return [*dict.fromkeys(each for each in kept if each is not None)]
    kept = ground_value(tool, parameter, value, speech)
    corrected = parameter.required or parameter.kind is Kind.CHOICE
    return _unasked(tool, parameter, speech) if kept is None and corrected else kept


def _unasked(tool: Tool, parameter: Parameter, speech: Speech) -> Any:
    """A required value that the model left out or got wrong, where the words leave no doubt."""
    if parameter.kind is Kind.IDENTIFIER:
        return patterned(parameter, speech.said)
    if parameter.kind is Kind.CHOICE:
        for is_meant in (choice_is_named, choice_is_said):
            meant = [each for each in parameter.choices if is_meant(tool, parameter, each, speech)]
            if len(meant) == 1:
                return meant[0]
        return None
    if parameter.kind is Kind.TEXT:
        return handed_over(speech) if is_handed_over(tool, parameter) else quoted_text(speech)
    return None


def _named_choices(tool: Tool, speech: Speech) -> dict[str, Any]:
    """The choices whose own names are in words that change a call, such as "make it weekly"."""
    heard = set(words(speech.said))
    return {
        parameter.name: each
        for parameter in tool.parameters
        if parameter.kind is Kind.CHOICE and not parameter.many
        for each in parameter.choices
        if set(words(str(each).replace("_", " "))) <= heard
    }


def _records(parameter: Parameter, speech: Speech) -> list[Any] | None:
    records = [dict(each) for each in speech.records]
    return records if records and jsonschema_rs.is_valid(dict(parameter.schema), records) else None


def _whole_question(tool: Tool, found: dict[str, Any], speech: Speech) -> None:
    """A question goes to a search exactly as it was asked: each rewritten word loses evidence."""
    if not is_search(tool):
        return
    (parameter,) = tool.required
    longest = int(parameter.schema.get("maxLength") or 1000)
    said = " ".join(speech.said.split())
    # A follow-up such as "and in Rome?" only makes sense with what the model took from earlier turns.
    complete = parameter.name not in found or set(found[parameter.name].lower().split()) <= set(
        re.sub(r"[^\w\s]", " ", said.lower()).split()
    )
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
    texts = [
        each for each in tool.required if each.kind is Kind.TEXT and isinstance(found.get(each.name), str)
    ]
    for parameter in texts:
        value = found[parameter.name]
        same = [each for each in texts if found.get(each.name) == value]
        if len(same) < 2 or speech.everything.lower().count(value.lower()) >= len(same):
            continue
        before = word_before(speech.said, value)
        kept = [each for each in same if before in led_by(tool, each)]
        for each in same:
            if len(kept) != 1 or each is not kept[0]:
                del found[each.name]
        return


def _is_valid(tool: Tool, name: str, value: Any) -> bool:
    parameter = tool.parameter(name)
    return parameter is not None and jsonschema_rs.is_valid(dict(parameter.schema), value)


def _unusable(
    tool: Tool, given: Mapping[str, Any], args: Mapping[str, Any], speech: Speech
) -> tuple[str, Parameter | None]:
    """A name that the user gave where an address or an identifier is needed."""
    for parameter in tool.parameters:
        if parameter.kind not in (Kind.EMAIL, Kind.IDENTIFIER, Kind.URL) or parameter.name not in given:
            continue
        members = (
            given[parameter.name] if isinstance(given[parameter.name], list) else [given[parameter.name]]
        )
        kept = args.get(parameter.name, ())
        for each in map(str, members):
            name = each.partition("@")[0]
            usable = any(
                str(one).lower() == each.lower() for one in ([kept] if isinstance(kept, str) else kept)
            )
            if not usable and len(kept) < len(members) and (said := speech.verbatim(name)):
                return said, parameter
    return "", None
