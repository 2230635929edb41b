"""One verb for several things, each at its own time: "book Dentist on Thursday and Yoga on Friday"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from jackfield_local.language.spans import without
from jackfield_local.language.words import content, name_words, stem
from jackfield_local.planner.deciding.several import Judge
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.requests import is_order, polite_stripped, seeks, verb
from jackfield_local.planner.language.wishes import links
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.tool import Tool
from jackfield_local.planner.remembered import Remembered

_ARTICLE = re.compile(r"(?:an?|the|another|my|our)\s", re.IGNORECASE)
_NO_THING = re.compile(
    r"(?:i|we|you|he|she|it|they|that|this|there|which|who|so|but|if|because|not|with|to|for|from|at|on|in"
    r"|by|until|till|about|between|instead|call|name|invite|make|tell|add|also|too)\b",
    re.IGNORECASE,
)
"""A part that begins with one of these says more of what stands before it."""
_PLACE = re.compile(r"\s((?:in|into|to|on|onto)\s+(?:my|our|the)\s+(?:\w+\s+)?\w+)[\s.!?]*$", re.IGNORECASE)
_AND = re.compile(r"^(?:(?:and|also|plus)\b[\s,]*)+", re.IGNORECASE)


def parted(heard: Heard, judge: Judge) -> list[str]:
    """The wishes that share a verb, each with it, where all are for one tool; else the words themselves."""
    tool = judge(heard.text).tool if links(heard.request) else None
    if tool is None or not _is_timed(tool):
        return [heard.text]
    parts = _shared(heard, tool)
    return parts if all(judge(each).tool is tool for each in parts) else [heard.text]


def in_full(heard: Heard, tools: Sequence[Tool], remembered: Remembered) -> Heard:
    """The words with the verb of those before them, where they only add a thing: "and Yoga on Friday"."""
    timed = any(each.id == remembered.last_tool and _is_timed(each) for each in tools)
    rest, lead = _AND.sub("", heard.request), _lead(remembered.last_question)
    if not (timed and lead) or rest == heard.request or is_order(rest) or seeks(rest):
        return heard
    return replace(heard, text=f"{lead} {rest}") if _is_another(replace(heard, text=rest)) else heard


def _is_timed(tool: Tool) -> bool:
    """Whether a tool does something at a time that it has to be told."""
    return any(each.kind is Kind.MOMENT for each in tool.required)


def _shared(heard: Heard, tool: Tool) -> list[str]:
    parts = _parts(heard)
    lead = _lead(parts[0])
    if len(parts) < 2 or not lead or any(is_order(each) or seeks(each) for each in parts[1:]):
        return [heard.text]
    place = _place(parts[-1], heard, tool)
    whole = [parts[0], *(f"{lead} {each}" for each in parts[1:])]
    return [*(f"{each} {place}".strip() for each in whole[:-1]), whole[-1]]


def _parts(heard: Heard) -> list[str]:
    """The words cut before each thing that has a time of its own, where the one before it has one too."""
    text = heard.request
    begin, found = 0, []
    ends = [*links(text), (len(text), len(text))]
    waits: tuple[int, int] | None = None
    """Where a thing may begin whose time is still to come."""
    for (cut, start), (end, _) in pairwise(ends):
        piece = text[start:end]
        if replace(heard, text=text[begin:cut]).when is None:
            continue
        named_before, waits = waits, waits or ((cut, start) if _ARTICLE.match(piece) else None)
        if replace(heard, text=piece).when is None:
            continue
        at = named_before or ((cut, start) if _is_another(replace(heard, text=piece)) else None)
        if at is not None:
            found.append(text[begin : at[0]].strip())
            begin = at[1]
        waits = None
    return [*found, text[begin:].strip()]


def _is_another(heard: Heard) -> bool:
    """Whether a time is said, and something that is to be at it."""
    if heard.when is None or _NO_THING.match(heard.text):
        return False
    spans = [*heard.when.spans, *([heard.length.span] if heard.length else ())]
    spans += [each.span for each in heard.emails]
    return spans[0].start > 0 and bool(content(without(heard.text, spans)))


def _lead(text: str) -> str:
    """The verb of a wish, or the words that wish where there is none: "I need a haircut"."""
    if is_order(text):
        return verb(text)
    rest = polite_stripped(text)
    return text[: max(0, text.find(rest[:12]))].strip() if rest and not seeks(text) else ""


def _place(last: str, heard: Heard, tool: Tool) -> str:
    """Where all of it is to go, as the last part says it: "into my calendar"."""
    found = _PLACE.search(last)
    if found is None or replace(heard, text=found.group(1)).when is not None:
        return ""
    homes = {*map(stem, name_words(tool.id)), *content(tool.purpose)}
    said = content(found.group(1))
    return found.group(1) if said and said[-1] in homes else ""
