"""The static part of the prompt: the tools and examples, byte-identical for every session of a registry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any

from jackfield_local.agent.answers import ask_for
from jackfield_local.agent.decision import (
    CANNOT,
    HELP,
    SAY,
    is_written,
    question_line,
    waiting_line,
    written_call,
)
from jackfield_local.agent.engine import Message, Prefix
from jackfield_local.agent.parameters import TEMPORAL, Kind, Parameter, Tool, first_sentence
from jackfield_local.agent.texts import is_handed_over
from jackfield_local.language.durations import duration
from jackfield_local.language.numbers import amounts, forms
from jackfield_local.language.times import When, read_when
from jackfield_local.language.words import content, stem, words

BUDGET = 5_500
"""Tokens of the static part; the context has room for the conversation besides."""

_CHARACTERS = 3.4
"""Characters in a token of such a text, on the careful side."""

_LONGEST_EXAMPLE = 220
_LONGEST_PURPOSE = 240
_LONGEST_SUMMARY = 110
_RULES = """\
You choose the tool for the user's last message and write one JSON object.
A call: {"tool_id": {arguments}}. Give only arguments that the user said. Copy dates, times and names as said.
Leave out everything else; never invent a value. Call the tool even if something it needs was not said yet.
If the user wants something done that no tool does: {"cannot": "what no tool does"}.
If the user asks what you can do: {"help": true}.
For greetings, thanks, small talk: {"say": "one short sentence"}.

Tools:
"""
_TALK = (
    ("hi there, how are you?", SAY, "Hello! What can I do for you?"),
    ("order a pizza with extra cheese", CANNOT, "order food"),
    ("cancel my appointment on Tuesday", CANNOT, "cancel appointments"),
    ("what can you do?", HELP, True),
    ("play some jazz", CANNOT, "play music"),
    ("never mind, forget it", SAY, "All right."),
    ("take the meeting with Sam off my list", CANNOT, "remove meetings"),
    ("thanks, that helped", SAY, "You're welcome."),
)
_SOME_DAY = datetime(2026, 3, 2, 9, 30)  # noqa: DTZ001 - only where a date stands matters, not which it is


def static_prefix(tools: Sequence[Tool]) -> tuple[Prefix, tuple[Tool, ...]]:
    """The prefix for these tools and the tools that it names: as much as the budget allows."""
    tools = [each for each in tools if is_usable(each)]
    for examples, summaries in ((2, True), (1, True), (1, False), (0, False)):
        prefix = _prefix(tools, examples, summaries=summaries)
        if _tokens(prefix) <= BUDGET:
            return prefix, tuple(tools)
    kept = list(tools)
    while kept and _tokens(prefix := _prefix(kept, 0, summaries=False)) > BUDGET:
        kept.pop()
    return prefix, tuple(kept)


def _tokens(prefix: Prefix) -> float:
    return sum(len(each.content) / _CHARACTERS + 5 for each in prefix)


def _prefix(tools: Sequence[Tool], examples: int, *, summaries: bool) -> Prefix:
    listed = "\n".join(_line(tool, summaries=summaries) for tool in tools)
    return (Message("system", _RULES + listed), *_pairs(tools, examples))


def _line(tool: Tool, *, summaries: bool) -> str:
    shown = "; ".join(_described(each, summaries=summaries) for each in tool.parameters if is_written(each))
    purpose = tool.description if len(tool.description) <= _LONGEST_PURPOSE else f"{tool.purpose}."
    return f"- {tool.id}: {purpose} ({shown})" if shown else f"- {tool.id}: {purpose}"


def _described(parameter: Parameter, *, summaries: bool) -> str:
    what = "|".join(map(str, parameter.choices)) or parameter.kind.value
    shown = f"{parameter.name}{'' if parameter.required else '?'}: {what}{'[]' if parameter.many else ''}"
    told = parameter.summary
    if not parameter.required and parameter.kind is not Kind.CHOICE:
        told = re.split(r"[;:,(]", told, maxsplit=1)[0].strip()
    return f"{shown}, {told[:_LONGEST_SUMMARY]}" if summaries and told else shown


def _pairs(tools: Sequence[Tool], most: int) -> Iterator[Message]:
    """Examples, one of each tool and then the next of each, so that no tool has the last word."""
    shown = [
        [
            (each.says, written_call(tool.id, as_said(tool, each.says, each.args)))
            for each in tool.guide.examples
            if len(each.says) <= _LONGEST_EXAMPLE
        ][:most]
        for tool in tools
    ]
    talk = [
        (said, json.dumps({branch: text}))
        for said, branch, text in _TALK
        if not (branch == CANNOT and _does(tools, str(text)))
    ]
    for row in zip_longest(*shown, talk[: len(talk) // 2], talk[len(talk) // 2 :]):
        for said, written in filter(None, row):
            yield Message("user", said)
            yield Message("assistant", written)
    if most:
        yield from _continued(tools)


def _continued(tools: Sequence[Tool]) -> Iterator[Message]:
    """How a card is changed and a question answered: only the argument that the user speaks of."""
    for tool in tools:
        timed = next((each for each in tool.required if each.kind in (Kind.DATE_TIME, Kind.TIME)), None)
        if timed is not None and tool.guide.examples:
            card = waiting_line(tool.id, tool.guide.examples[0].args)
            yield Message("user", f"{card}make it half an hour later")
            yield Message("assistant", written_call(tool.id, {timed.name: "half an hour later"}))
            break
    for tool in tools:
        named = next((each for each in tool.required if each.kind is Kind.TEXT), None)
        shown = [each.args.get(named.name) for each in tool.guide.examples] if named else []
        if named is not None and len(tool.required) > 1 and shown and isinstance(shown[-1], str):
            yield Message("user", f"{question_line(ask_for(named))}{shown[-1]}")
            yield Message("assistant", written_call(tool.id, {named.name: shown[-1]}))
            break


def is_usable(tool: Tool) -> bool:
    """Whether the user's words can give all that a tool needs: not a number that its examples make up."""
    for parameter in tool.required:
        name = parameter.name
        if parameter.kind in (Kind.NUMBER, Kind.DURATION):
            shown = [each for each in tool.guide.examples if name in each.args]
            said = sum(_is_said(parameter, each.args[name], each.says) for each in shown)
            if said * 2 < len(shown):
                return False
    return True


def _does(tools: Sequence[Tool], deed: str) -> bool:
    """Whether a tool speaks of the verb of a deed: an example that it cannot be done would be wrong."""
    verb = stem(deed.split(maxsplit=1)[0])
    return any(verb in map(stem, words(f"{tool.id.replace('_', ' ')} {tool.description}")) for tool in tools)


def as_said(tool: Tool, says: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a guide's example as the model is to write them: times as said, nothing unsaid."""
    when = read_when(says, _SOME_DAY)
    found: dict[str, Any] = {}
    for parameter in tool.parameters:
        value = args.get(parameter.name)
        if value is None or not is_written(parameter):
            continue
        if parameter.kind in TEMPORAL:
            phrase = _phrase(parameter.kind, says, when)
            # The end of a time span is computed from the words that give its beginning.
            if phrase and not (parameter.ends and phrase in found.values()):
                found[parameter.name] = phrase
        elif parameter.kind is Kind.TEXT and is_handed_over(tool, parameter):
            continue
        elif parameter.required or _is_said(parameter, value, says):
            found[parameter.name] = first_sentence(value) if isinstance(value, str) else value
    return found


def _phrase(kind: Kind, says: str, when: When | None) -> str:
    """The words that say when, or only the day or the clock time of it."""
    spans = [*when.spans] if when is not None else []
    clock = when.clock_span if when is not None else None
    if kind is Kind.TIME:
        spans = [clock] if clock is not None else []
    elif kind is Kind.DATE:
        spans = [each for each in spans if each != clock] or spans
    start, end = (min(each.start for each in spans), max(each.end for each in spans)) if spans else (0, 0)
    return says[start:end].strip(" ,.")


def _is_said(parameter: Parameter, value: Any, says: str) -> bool:
    """Whether a value of an example can be told from its words."""
    match parameter.kind:
        case Kind.NUMBER | Kind.DURATION:
            return duration(says) is not None or any(value in forms(each) for each in amounts(says))
        case Kind.CHOICE if not parameter.many:
            return bool(value != parameter.schema.get("default"))
        case Kind.SWITCH:
            return bool(value)
        case Kind.ZONE:
            return str(value).rpartition("/")[2].replace("_", " ").lower() in says.lower()
    members = value if isinstance(value, list) else [value]
    said = set(content(says))
    return all(each and said.issuperset(content(str(each))) for each in members)
