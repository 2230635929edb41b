"""Grounding: a tool only gets argument values that come from the user's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
from jackfield_language.datetimes import read_time
from jackfield_language.questions import asks_for_facts, is_continuation, refers_back, refers_to_person
from jackfield_language.text import GAP, blanked
from jackfield_language.words import content, stem, stems

from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.texts import check_text, guess_texts, introduced, is_brief, is_search, unexplained
from jackfield_local.agent.times import ground_times
from jackfield_local.agent.tools import TEMPORAL, Tool, ToolParameter, ValueType
from jackfield_local.agent.values import assign_values, find_all, find_value, named_choices

_COPIED = 0.6  # The minimum share of the user's own words in a text that counts as said.
_LONGEST_QUERY = 1000
_PLACE = re.compile(r"\bin (?:the )?(\w+)", re.IGNORECASE)


@dataclass(frozen=True)
class GroundedArguments:
    """The arguments that were found, the first missing parameter, and a value that cannot be used."""

    args: Mapping[str, Any]
    missing: ToolParameter | None = None
    unusable: str = ""  # A value that the parameter does not accept, such as a name instead of an address.
    guessed: frozenset[str] = frozenset()  # The names of guesses, which need consent if the tool writes.

    @property
    def certain(self) -> dict[str, Any]:
        """The arguments that were not guessed."""
        return {name: value for name, value in self.args.items() if name not in self.guessed}

    def has_values(self, zone: str) -> bool:
        """Return whether any argument is certain; the user's own time zone is implied and does not count."""
        return any(value != zone for value in self.certain.values())


def ground(
    tool: Tool, hints: Mapping[str, Any] | None, message: UserMessage, base: Mapping[str, Any] | None = None
) -> GroundedArguments:
    """Return the arguments of a call that can be taken from the user's words.

    `hints` are the arguments that the model wrote; they are checked against the words. Without a model, texts
    and optional times are guessed. `base` are the arguments of an open question or call, which may change.
    """
    base = base or {}
    guesses = hints is None
    hints = {name: value for name, value in (hints or {}).items() if not _is_empty(value)}
    if is_search(tool) and (guesses or asks_for_facts(message.text)):
        # Every filter and every rewritten word might exclude the answer.
        parameter = tool.required[0]
        return GroundedArguments(
            {**base, parameter.name: _query(parameter, hints.get(parameter.name), message)}
        )
    times = _temporal_hints(tool, message) if guesses else hints
    found: dict[str, Any] = ground_times(tool, times, message, base)
    found |= assign_values(tool, hints, message, base)
    for parameter in tool.parameters:
        if parameter.name not in found and parameter.type not in TEMPORAL:
            value = _value(tool, parameter, hints.get(parameter.name), message)
            found |= {} if _is_empty(value) else {parameter.name: value}
    guessed = _drop_weaker(tool, hints, found, message, base)
    if guesses:
        likely = guess_texts(tool, message, [*found.values()])
        likely = {name: value for name, value in likely.items() if name not in base or is_brief(tool, name)}
        guessed |= likely.keys() - found.keys()
        found = likely | found
    unusable, refused = _unusable(tool, hints, found, message)
    for each in tool.parameters:
        if each.many and each.name in base and each.name in found:  # New members join the existing ones.
            new = [member for member in found[each.name] if member not in base[each.name]]
            found[each.name] = [*base[each.name], *new]
    args = _valid(tool, {**base, **found})
    missing = next((each for each in tool.required if each.name not in args), refused)
    return GroundedArguments(args, missing, unusable, frozenset(guessed & args.keys()))


def _is_empty(value: Any) -> bool:
    return value in (None, "", [], {})


def _query(parameter: ToolParameter, hint: Any, message: UserMessage) -> str:
    """Return the question as asked; to "what is her number?", add the person that model or topic name."""
    said = " ".join(message.text.split())
    when = read_time(said, message.now) if is_continuation(said) else None
    only_time = when is not None and not content(blanked(said, when.spans).replace(GAP, " "))
    if refers_back(said) or only_time:
        new = [each for each in str(hint or "").split() if not stems(each) <= stems(said)]
        names = [each for each in new if each[:1].isupper() or not message.topic]
        named = " ".join(names).strip(":,.") if message.is_shown(" ".join(names)) else ""
        if meant := named or message.topic:
            said = f"{said.rstrip('?!. ')} ({meant})?"
    return said[: int(parameter.schema.get("maxLength") or _LONGEST_QUERY)]


def _temporal_hints(tool: Tool, message: UserMessage) -> dict[str, str]:
    """Return the words for each time parameter that is required, an end, or the first of its type."""
    timed = [each for each in tool.parameters if each.type in TEMPORAL]
    first = {each.type: each for each in reversed(timed)}
    if read_time(message.text, message.now) is None:
        return {}
    return {
        each.name: message.text for each in timed if each.required or first[each.type] is each or each.ends
    }


def _value(tool: Tool, parameter: ToolParameter, hint: Any, message: UserMessage) -> Any:
    if parameter.type is ValueType.RECORDS:
        records = [dict(each) for each in message.records]
        return records if parameter.required and _is_valid(parameter, records) else None
    find_one = check_text if parameter.type is ValueType.TEXT else find_value
    if not parameter.many:
        return find_one(tool, parameter, hint, message)
    members = find_all(parameter, message) if hint is None else _members(hint)
    kept = [find_one(tool, parameter, each, message) for each in members]
    return [each for place, each in enumerate(kept) if each is not None and each not in kept[:place]]


def _drop_weaker(
    tool: Tool, hints: Mapping[str, Any], found: dict[str, Any], message: UserMessage, base: Mapping[str, Any]
) -> set[str]:
    """Delete values that earlier ones override; return the names of the values that are guesses."""
    guessed, repeated = set(), _repeated(tool, found, message)
    for parameter in tool.parameters:
        name, value = parameter.name, found.get(parameter.name)
        if value is None or parameter.many:
            continue
        match parameter.type:
            case ValueType.IDENTIFIER:  # The user pointed at it instead of saying it.
                likely = name not in hints and str(value) not in message.text
            case ValueType.CHOICE:
                likely = name not in hints and value not in named_choices(parameter, message.text)
            case ValueType.TEXT:  # The model composed it.
                likely = value not in message.full_text and message.share(value) < _COPIED
            case _:
                likely = False
        unsaid = parameter.type is ValueType.ZONE and value == message.zone
        if name in repeated or (name in base and (unsaid or (likely and parameter.choices))):
            del found[name]
        elif likely:
            guessed.add(name)
    return guessed


def _repeated(tool: Tool, found: Mapping[str, Any], message: UserMessage) -> set[str]:
    """Return the texts whose words already belong to another value: what was said once gives one value.

    Of two required values, the one that the examples introduce with the same words is kept.
    """
    texts = {
        each: found[each.name].lower()
        for each in tool.parameters
        if each.type is ValueType.TEXT and isinstance(found.get(each.name), str)
    }
    repeated = set()
    for parameter, value in texts.items():
        rivals = [each for each in texts if each is not parameter and each.required >= parameter.required]
        others = sum(value in texts[each] for each in rivals)
        said_once = others and message.everything.lower().count(value) <= others
        if said_once and not (parameter.required and introduced(tool, parameter, message, value)):
            repeated.add(parameter.name)
    return repeated


def _unusable(
    tool: Tool, hints: Mapping[str, Any], found: dict[str, Any], message: UserMessage
) -> tuple[str, ToolParameter | None]:
    """Return a name that the user gave instead of an address, identifier or zone, with its parameter."""
    strange = unexplained(tool, message, found.values())
    lacking = any(each.name not in found for each in tool.required)
    for parameter in tool.parameters:
        if parameter.type is ValueType.ZONE and found.get(parameter.name) == message.zone:
            # The time of an unknown place must not be reported as the user's own.
            named = [each for each in _PLACE.findall(message.text) if stem(each) in strange]
            if named:
                del found[parameter.name]
                return named[0], parameter
        has_form = parameter.type in (ValueType.EMAIL, ValueType.IDENTIFIER, ValueType.URL)
        if not has_form or not (lacking or parameter.required):
            continue  # A complete call does not need optional values.
        hinted, usable = _members(hints.get(parameter.name)), _members(found.get(parameter.name))
        for each in map(str, hinted):
            name = message.verbatim(each.partition("@")[0]) or (
                each if refers_to_person(message.text) else ""
            )
            if name and len(usable) < len(hinted) and each.lower() not in map(str.lower, map(str, usable)):
                return name, parameter
    return "", None


def _members(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _valid(tool: Tool, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that the schema allows, without those that only repeat a default."""
    known = ((name, value, tool.parameter(name)) for name, value in args.items())
    return {
        name: value
        for name, value, each in known
        if each is not None
        and _is_valid(each, value)
        and (each.required or value != each.schema.get("default"))
    }


def _is_valid(parameter: ToolParameter, value: Any) -> bool:
    try:
        return jsonschema_rs.is_valid(dict(parameter.schema), value)
    except ValueError:  # The schema has a reference without a target.
        return False
