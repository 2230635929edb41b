"""Choices and switches: the values that a schema lists, in the words that people have for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from jackfield_local.language.spans import Span
from jackfield_local.language.words import STOP, content, name_words, singular, stem, words
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.requests import subject
from jackfield_local.planner.language.synonyms import other_words
from jackfield_local.planner.reading.tool import Parameter, Tool

_STOP_STEMS = frozenset(map(stem, STOP))
_HOW = re.compile(r"\bhow (?:long|many|much|often|far)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_THE = re.compile(r"\b(?:the|our)\s+$", re.IGNORECASE)
_LISTED = re.compile(r"^(?:which|what|any|all|some|a|an|only)$", re.IGNORECASE)
_RELATIVE = re.compile(r"^\s+(?:who|that|which|about|on|whose|with|from|where)\b", re.IGNORECASE)


def values(parameter: Parameter) -> list[str]:
    """The values that the schema lists."""
    items = parameter.schema.get("items")
    listed = (items if parameter.many and isinstance(items, dict) else parameter.schema).get("enum", ())
    return [each for each in listed if isinstance(each, str)]


def chosen(
    parameter: Parameter, tool: Tool, heard: Heard, claimed: Sequence[Span]
) -> list[tuple[str, Span | None]]:
    """The values that were said, or explained, each with its place where it has one."""
    closed = [*claimed, *(each.span for each in heard.quotes)]
    found: list[tuple[str, Span | None]] = []
    for value in values(parameter):
        places = [each for each in _places(heard, value) if not any(each.overlaps(span) for span in closed)]
        if places:
            found.append((value, _closest(parameter, heard.request, places)))
    if not found and not parameter.many:
        text, default = _searchable(heard), parameter.schema.get("default")
        found = [
            (value, None)
            for value in values(parameter)
            if value != default and _glossed(parameter, tool, value, text)
        ]
    return sorted(found, key=lambda each: each[1] or Span(0, 0))


def is_a_thing(parameter: Parameter, heard: Heard, span: Span) -> bool:
    """Whether the value that holds anyway is spoken of as a thing, which a text may name: "the studio"."""
    said = singular(heard.request[span.start : span.end])
    return said == parameter.schema.get("default") and bool(_THE.search(heard.request[: span.start]))


def asked_for(parameter: Parameter, heard: Heard) -> list[tuple[str, Span]]:
    """The values that name what is looked for: "projects", "a person who"."""
    return [
        (value, span)
        for value in values(parameter)
        for span in [*_places(heard, value)][:1]
        if _asked_for(heard.request, span)
    ]


def switched_on(parameter: Parameter, tool: Tool, heard: Heard) -> bool:
    """Whether words were said that belong to this switch and to nothing else of the tool."""
    own = set(content(parameter.description)) | {stem(name_words(parameter.name)[-1])}
    others = [f"{each.spoken} {each.description}" for each in tool.parameters if each is not parameter]
    unsaid = [each.says for each in tool.guide.examples if not each.args.get(parameter.name)]
    common = set(content(" ".join([tool.guide.summary, *others, *unsaid])))
    return bool((own - common) & heard.content)


def _searchable(heard: Heard) -> str:
    return _HOW.sub(lambda match: " " * len(match.group()), heard.request)


def _places(heard: Heard, value: str) -> Iterator[Span]:
    """Where a value stands, in its own words before others."""
    found = [*_WORD.finditer(_searchable(heard))]
    said = [singular(each.group()) for each in found]
    for wanted in other_words(value):
        for index in range(len(said) - len(wanted) + 1):
            if tuple(said[index : index + len(wanted)]) == wanted:
                yield Span(found[index].start(), found[index + len(wanted) - 1].end())


def _closest(parameter: Parameter, text: str, places: Sequence[Span]) -> Span:
    """The place beside the parameter's own name, which belongs to it then: "in the team calendar"."""
    for span in places:
        after = re.match(
            rf"['\u2019]?s?\s+{re.escape(singular(parameter.spoken))}s?\b", text[span.end :], re.IGNORECASE
        )
        if after:
            return Span(span.start, span.end + after.end())
    return places[0]


def _asked_for(text: str, span: Span) -> bool:
    """Whether the word names what is looked for, rather than a part of what it is about."""
    word, after = text[span.start : span.end], text[span.end :]
    before = words(text[: span.start])
    if len(before) - len(words(text)) + len(words(subject(text))) > 3:
        return False
    listed = bool(before) and bool(_LISTED.match(before[-1]))
    return word.lower().endswith("s") or word.lower() == "people" or listed or bool(_RELATIVE.match(after))


def _glossed(parameter: Parameter, tool: Tool, value: str, text: str) -> bool:
    """Whether the words with which the value is explained were said; "the user's" is "my" to the user."""
    told = [line for line in tool.guide.parameters.splitlines() if line.startswith(f"`{parameter.name}`")]
    own = _gloss("\n".join([parameter.description, *told]), value)
    others = frozenset().union(
        *(_gloss(parameter.description, each) for each in values(parameter) if each != value)
    )
    said = set(words(text))
    mine = "user's" in own
    meant = {stem(word) for word in own - others if len(word) > 2 and word != "user's"} - _STOP_STEMS
    meant -= set(content(f"{tool.description} {tool.guide.summary}"))
    hits = meant & {stem(word) for word in said}
    return bool(hits) and (not mine or bool(said & {"my", "mine", "own"}))


@cache
def _gloss(explained: str, value: str) -> frozenset[str]:
    pattern = rf"(?<![\w]){re.escape(value)}`?(?: \(default\))?(?: is|:| for)? ([^,;.()\n]+)"
    return frozenset(word for match in re.finditer(pattern, explained) for word in words(match.group(1)))
