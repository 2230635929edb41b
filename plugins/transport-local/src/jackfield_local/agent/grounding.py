"""Grounding: the arguments of a call are values that the user's words give; nothing else is passed on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from jackfield_local.agent.parameters import CODES, TEMPORAL, Kind, Parameter, Tool
from jackfield_local.agent.speech import Speech
from jackfield_local.agent.texts import check_text, guess_texts, introduced, is_brief, is_search, unexplained
from jackfield_local.agent.times import ground_times
from jackfield_local.agent.values import choice_is_named, find_all, find_codes, find_numbers, find_value
from jackfield_local.language.questions import asks_for_facts, has_pronoun, is_continuation
from jackfield_local.language.spans import GAP, blanked
from jackfield_local.language.times import read_when
from jackfield_local.language.words import content, stem

_COPIED = 0.6
"""A text from which on it counts as the user's own words, by the share of them."""

_LONGEST_QUERY = 1000
_PLACE = re.compile(r"\bin (?:the )?(\w+)", re.IGNORECASE)


@dataclass(frozen=True)
class Grounded:
    """The arguments that hold, the first that is missing, and what the user named that cannot be used."""

    args: Mapping[str, Any]
    missing: Parameter | None = None
    unusable: str = ""
    """What the user named in a form that the parameter does not take, such as a name for an address."""

    guessed: frozenset[str] = frozenset()
    """The arguments that are likely rather than certain; a tool that writes must not get them."""

    @property
    def certain(self) -> dict[str, Any]:
        """The arguments that were not guessed."""
        return {name: value for name, value in self.args.items() if name not in self.guessed}

    def has_values(self, zone: str) -> bool:
        """Whether any argument is certain; the user's own time zone, which was not said, is none."""
        return any(value != zone for value in self.certain.values())


def ground(
    tool: Tool, hints: Mapping[str, Any] | None, speech: Speech, base: Mapping[str, Any] | None = None
) -> Grounded:
    """The arguments of a call that the words give.

    `hints` are what the model wrote, which is checked against the words; without a model, texts and optional
    times are guessed. `base` are the arguments of an open question or call, which the words change.
    """
    base = base or {}
    guesses = hints is None
    hints = {name: value for name, value in (hints or {}).items() if not _is_empty(value)}
    if is_search(tool) and (guesses or asks_for_facts(speech.said)):
        # Every filter and every rewritten word can hide the answer.
        return Grounded({**base, tool.required[0].name: _query(tool.required[0], speech)})
    times = _temporal_hints(tool, speech) if guesses else hints
    found: dict[str, Any] = {**ground_times(tool, times, speech, base)}
    found |= _typed(tool, hints, speech, base)
    guessed = _drop_weaker(tool, hints, found, speech, base)
    if guesses:
        likely = guess_texts(tool, speech, [*found.values()])
        likely = {name: value for name, value in likely.items() if name not in base or is_brief(tool, name)}
        guessed |= likely.keys() - found.keys()
        found = likely | found
    unusable, refused = _unusable(tool, hints, found, speech)
    args = _valid(tool, {**base, **_extended(tool, found, base)})
    missing = next((each for each in tool.required if each.name not in args), refused)
    return Grounded(args, missing, unusable, frozenset(guessed & args.keys()))


def _is_empty(value: Any) -> bool:
    return value in (None, "", [], {})


def _query(parameter: Parameter, speech: Speech) -> str:
    """A question as it was asked; "and on Fridays?" and "what is her number?" with what they are about."""
    said = " ".join(speech.said.split())
    when = read_when(said, speech.now) if is_continuation(said) else None
    only_time = when is not None and not content(blanked(said, when.spans).replace(GAP, " "))
    if speech.topic and (has_pronoun(said) or only_time):
        said = f"{said.rstrip('?!. ')} ({speech.topic})?"
    return said[: int(parameter.schema.get("maxLength") or _LONGEST_QUERY)]


def _typed(tool: Tool, hints: Mapping[str, Any], speech: Speech, base: Mapping[str, Any]) -> dict[str, Any]:
    """The values other than times that their parameters' types find in the words."""
    # A number completes what is missing; where nothing is, it replaces the one before.
    lacking = {each.kind for each in tool.required if each.name not in base}
    known = base.keys() if lacking & {Kind.NUMBER, Kind.DURATION} else ()
    found = find_numbers(tool, hints, speech, known)
    for kind in CODES - {Kind.ZONE}:
        alike = [each for each in tool.parameters if each.kind is kind and not each.many]
        alike = [each for each in alike if not hints or each.name in hints or each.name not in base]
        found |= find_codes(alike, tool, hints, speech) if alike else {}
    for parameter in tool.parameters:
        if parameter.name not in found and parameter.kind not in TEMPORAL:
            value = _value(tool, parameter, hints.get(parameter.name), speech)
            if not _is_empty(value):
                found[parameter.name] = value
    return found


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
        records = [dict(each) for each in speech.records]
        return records if parameter.required and _is_valid(parameter, records) else None
    find_one = check_text if parameter.kind is Kind.TEXT else find_value
    if not parameter.many:
        return find_one(tool, parameter, hint, speech)
    members = find_all(parameter, speech) if hint is None else _members(hint)
    kept = [find_one(tool, parameter, each, speech) for each in members]
    return [each for place, each in enumerate(kept) if each is not None and each not in kept[:place]]


def _drop_weaker(
    tool: Tool, hints: Mapping[str, Any], found: dict[str, Any], speech: Speech, base: Mapping[str, Any]
) -> set[str]:
    """Leave out values that what was said before or elsewhere outweighs; the names of those only likely."""
    guessed, repeated = set(), _repeated(tool, found, speech)
    for parameter in tool.parameters:
        name, value = parameter.name, found.get(parameter.name)
        if value is None or parameter.many:
            continue
        hinted = name in hints
        pointed_at = parameter.kind is Kind.IDENTIFIER and not hinted and str(value) not in speech.said
        inferred = parameter.kind is Kind.CHOICE and not hinted and not choice_is_named(value, speech)
        composed = parameter.kind is Kind.TEXT and not (
            value in speech.whole or speech.share(value) >= _COPIED
        )
        own_zone = parameter.kind is Kind.ZONE and value == speech.zone
        if name in repeated or (name in base and (inferred or own_zone)):
            del found[name]
        elif pointed_at or inferred or composed:
            guessed.add(name)
    return guessed


def _repeated(tool: Tool, found: Mapping[str, Any], speech: Speech) -> set[str]:
    """Texts of which the words are another value already: what was said once gives one value.

    Of two values that a tool needs, the one stays that the examples introduce this way.
    """
    texts = {
        each: found[each.name].lower()
        for each in tool.parameters
        if each.kind is Kind.TEXT and isinstance(found.get(each.name), str)
    }
    repeated = set()
    for parameter, value in texts.items():
        rivals = [each for each in texts if each is not parameter and each.required >= parameter.required]
        others = sum(value in texts[each] for each in rivals)
        said_once = others and speech.everything.lower().count(value) <= others
        if said_once and not (parameter.required and introduced(tool, parameter, speech, value)):
            repeated.add(parameter.name)
    return repeated


def _unusable(
    tool: Tool, hints: Mapping[str, Any], found: dict[str, Any], speech: Speech
) -> tuple[str, Parameter | None]:
    """A name that the user gave where an address, an identifier or a known place is needed."""
    strange = unexplained(tool, speech, found.values())
    lacking = any(each.name not in found for each in tool.required)
    for parameter in tool.parameters:
        if parameter.kind is Kind.ZONE and found.get(parameter.name) == speech.zone:
            # The time of a place that is not known must not be told as the user's own.
            named = [each for each in _PLACE.findall(speech.said) if stem(each) in strange]
            if named:
                del found[parameter.name]
                return named[0], parameter
        has_form = parameter.kind in (Kind.EMAIL, Kind.IDENTIFIER, Kind.URL)
        if not has_form or not (lacking or parameter.required):
            continue  # A call that is complete does without an option.
        hinted, usable = _members(hints.get(parameter.name)), _members(found.get(parameter.name))
        for each in map(str, hinted):
            name = speech.verbatim(each.partition("@")[0]) or (each if has_pronoun(speech.said) else "")
            if name and len(usable) < len(hinted) and each.lower() not in map(str.lower, map(str, usable)):
                return name, parameter
    return "", None


def _members(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _extended(tool: Tool, found: dict[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """New members of a list come to those that it has already."""
    lists = [each.name for each in tool.parameters if each.many and each.name in base and each.name in found]
    new = {name: [each for each in found[name] if each not in base[name]] for name in lists}
    return found | {name: [*base[name], *members] for name, members in new.items()}


def _valid(tool: Tool, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the schema takes, without those that only repeat a default."""
    known = ((name, value, tool.parameter(name)) for name, value in args.items())
    return {
        name: value
        for name, value, each in known
        if each is not None
        and _is_valid(each, value)
        and (each.required or value != each.schema.get("default"))
    }


def _is_valid(parameter: Parameter, value: Any) -> bool:
    try:
        return jsonschema_rs.is_valid(dict(parameter.schema), value)
    except ValueError:  # A schema that refers to something that is not there.
        return False
