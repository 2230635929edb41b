"""Values for a tool's parameters, found in the user's words by their types and by the guide's examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from jackfield_local.agent import codes
from jackfield_local.agent.parameters import CODES, TEMPORAL, Kind, Parameter, Tool
from jackfield_local.agent.speech import Speech
from jackfield_local.agent.values import is_handed_over, is_search, led_by, patterned
from jackfield_local.language.addresses import emails, ids, quoted, urls
from jackfield_local.language.amounts import Amount, amounts
from jackfield_local.language.durations import duration
from jackfield_local.language.numbers import ORDINALS
from jackfield_local.language.spans import Span, masked
from jackfield_local.language.times import read_when
from jackfield_local.language.words import content, name_words, stem, words

_GAP = "\x00"
_RUN = re.compile(rf"[^{_GAP}\s,;:.!?]+(?:[ '\u2019-]+[^{_GAP}\s,;:.!?]+)*")


@dataclass
class Extracted:
    """The values that were found; those named in `guessed` are likely rather than certain."""

    values: dict[str, Any] = field(default_factory=dict)
    guessed: set[str] = field(default_factory=set)


def extract(tool: Tool, speech: Speech) -> Extracted:
    """The values of a tool's parameters in the last words of the user."""
    found = Extracted()
    for parameter in tool.parameters:
        value = _typed(parameter, speech)
        if value not in (None, [], ""):
            found.values[parameter.name] = value
    found.values |= _numbers(tool, speech)
    for kind in (Kind.CURRENCY, Kind.LANGUAGE, Kind.TERRITORY):
        found.values |= _codes(tool, kind, speech.said)
    _texts(tool, speech, found)
    return found


def reply(tool: Tool, parameter: Parameter, speech: Speech) -> str:
    """The value in a reply to a question for a text: all of it, or the name that a phrase leads to."""
    runs = _left_over(tool, parameter, speech) if _is_brief(tool, parameter) else []
    return runs[0] if len(runs) == 1 else speech.said


def _typed(parameter: Parameter, speech: Speech) -> Any:
    """A value whose form tells what it is."""
    said = speech.said
    several: Sequence[Any] = ()
    match parameter.kind:
        case kind if kind in TEMPORAL:
            return said if read_when(said, speech.now) is not None else None
        case Kind.CHOICE:
            several = [each for each in parameter.choices if _is_named(each, said)]
            if len(several) != 1 and not parameter.many:
                return None
        case Kind.SWITCH:
            return True if set(name_words(parameter.name)) <= set(words(said)) else None
        case Kind.EMAIL:
            several = [each.text for each in emails(said)]
        case Kind.URL:
            several = [each.text for each in urls(said)]
        case Kind.IDENTIFIER:
            several = [*filter(None, [patterned(parameter, said)]), *(each.text for each in ids(said))]
            several = several or _pointed_at(speech)
        case Kind.ZONE:
            return codes.zone_in(said)
        case Kind.DURATION:
            length = duration(said)
            return None if length is None else length.length.total_seconds() / parameter.unit_seconds
    return list(several) if parameter.many else next(iter(several), None)


def _is_named(choice: Any, said: str) -> bool:
    """Whether the words have every word of a choice."""
    return {stem(each) for each in words(str(choice).replace("_", " "))} <= {
        stem(each) for each in words(said)
    }


def _pointed_at(speech: Speech) -> list[str]:
    """The identifier of a shown record that the words count out or call by its title."""
    heard = words(speech.said)
    place = next((ORDINALS[word] for word in heard if word in ORDINALS), 0)
    shown = [each for each in speech.records if isinstance(each.get("id"), str)]
    if 0 < place <= len(shown):
        return [shown[place - 1]["id"]]
    named = [
        each["id"]
        for each in shown
        if (title := set(content(str(each.get("title") or each.get("name") or "")))) and title <= speech.stems
    ]
    return named if len(named) == 1 else []


def _numbers(tool: Tool, speech: Speech) -> dict[str, float]:
    """Numbers: each goes to the parameter that is named beside it, the rest in the order of the examples."""
    wanted = [each for each in tool.parameters if each.kind is Kind.NUMBER and not each.many]
    said = masked(speech.said, ((each, _GAP * (each.end - each.start)) for each in _time_spans(tool, speech)))
    left = amounts(said) if wanted else []
    found: dict[str, float] = {}
    for parameter in wanted:
        named = [each for each in left if _stands_beside(parameter, said, each)]
        if len(named) == 1:
            found[parameter.name] = named[0].value
            left.remove(named[0])
    rest = [each for each in wanted if each.required and each.name not in found]
    order = _usual_order(tool, rest) if len(rest) == len(left) else None
    return found | {each.name: amount.value for each, amount in zip(order or (), left, strict=False)}


def _stands_beside(parameter: Parameter, text: str, amount: Amount) -> bool:
    """Whether a word of the parameter's name or description stands next to a number."""
    told = {stem(each) for each in words(f"{parameter.spoken} {parameter.summary}")}
    after = [*words(text[amount.span.end :])[:1]]
    before = [*words(text[: amount.span.start])[-1:]]
    suffix = words(text[amount.span.start : amount.span.end])[1:]
    return bool({stem(each) for each in (*before, *after, *suffix) if content(each)} & told)


def _usual_order(tool: Tool, parameters: Sequence[Parameter]) -> tuple[Parameter, ...] | None:
    """The order in which all examples of the guide give these numbers; nothing where they differ."""
    if len(parameters) < 2:
        return tuple(parameters)
    orders: list[tuple[Parameter, ...]] = []
    for example in tool.guide.examples:
        values = [each.value for each in amounts(example.says)]
        if all(example.args.get(each.name) in values for each in parameters):
            orders.append(tuple(sorted(parameters, key=lambda each: values.index(example.args[each.name]))))
    return orders[0] if len(orders) > 1 and len(set(orders)) == 1 else None


def _time_spans(tool: Tool, speech: Speech) -> list[Span]:
    """Where the words speak of a time or of a length of time that the tool takes."""
    kinds = {each.kind for each in tool.parameters}
    when = read_when(speech.said, speech.now) if kinds & TEMPORAL else None
    spans = [*when.spans] if when is not None else []
    length = duration(speech.said) if kinds & (TEMPORAL | {Kind.DURATION}) else None
    return [*spans, length.span] if length is not None else spans


def _codes(tool: Tool, kind: Kind, text: str) -> dict[str, str]:
    """Codes: where there are several, the guide's examples show which stands where."""
    wanted = [each for each in tool.parameters if each.kind is kind and not each.many]
    named = codes.mentions(kind, text)[: len(wanted)] if wanted else []
    signs = {each.name: _code_signs(tool, each) for each in wanted}

    def fit(parameters: Sequence[Parameter]) -> int:
        return sum(
            bool(_signs_of(text, mention.start) & signs[each.name])
            for each, mention in zip(parameters, named, strict=True)
        )

    orders = sorted(permutations(wanted, len(named)), key=fit, reverse=True)
    if not orders or (len(named) < len(wanted) and fit(orders[0]) < len(named)):
        return {}
    return {each.name: mention.codes[0] for each, mention in zip(orders[0], named, strict=True)}


def _code_signs(tool: Tool, parameter: Parameter) -> set[str]:
    """The words before a code in the examples, and whether it follows a number there."""
    found: set[str] = set()
    for example in tool.guide.examples:
        for mention in codes.mentions(parameter.kind, example.says):
            if example.args.get(parameter.name) in mention.codes:
                found |= _signs_of(example.says, mention.start)
    return found


def _signs_of(text: str, start: int) -> set[str]:
    before = words(text[:start])[-1:]
    after_number = any(each.span.end >= start > each.span.start for each in amounts(text))
    return {*before, "#"} if after_number or (before and before[0].isdigit()) else {*before}


def _texts(tool: Tool, speech: Speech, found: Extracted) -> None:
    if is_search(tool):
        found.values[tool.required[0].name] = speech.said
        return
    wanted = [
        each
        for each in tool.parameters
        if each.kind is Kind.TEXT and not each.many and not is_handed_over(tool, each)
    ]
    needed = [each for each in wanted if each.required]
    exact = [each.text for each in quoted(speech.said)]
    if exact and len(exact) == len(needed):
        found.values |= {each.name: text for each, text in zip(needed, exact, strict=True)}
        return
    for parameter in wanted:
        runs = [each for each in _left_over(tool, parameter, speech) if each not in found.values.values()]
        value = _led(tool, parameter, speech.said, runs)
        if not value and [each for each in needed if each.name not in found.values] == [parameter]:
            value = max(runs, key=len, default="")
        if value:
            found.values[parameter.name] = value
            found.guessed.add(parameter.name)


def _led(tool: Tool, parameter: Parameter, said: str, runs: Iterable[str]) -> str:
    """The run of words that follows what leads to this value in the examples, such as "from" or "to"."""
    leads = led_by(tool, parameter)
    return next(
        (run for run in runs if leads & set(words(said[: said.find(run)])[-1:])),
        "",
    )


def unexplained(tool: Tool, speech: Speech, values: Iterable[Any]) -> set[str]:
    """The stems of the words that neither the tool's own words nor its values account for."""
    text = _blanked(tool, speech)
    used = {stem(word) for value in values for word in words(str(value))}
    return set(content(text.replace(_GAP, " "))) - _known(tool) - used


def _left_over(tool: Tool, parameter: Parameter, speech: Speech) -> list[str]:
    """The runs of words that say nothing else: no time, no number, no address, no word of the tool's own."""
    known = _known(tool)
    brief = _is_brief(tool, parameter)
    runs: list[str] = []
    for match in _RUN.finditer(_blanked(tool, speech)):
        parts: list[list[str]] = [[]]
        for word in match.group().split():
            # A name ends at a function word; a sentence has them inside.
            if brief and not content(word):
                parts.append([])
            else:
                parts[-1].append(word)
        for part in parts:
            kept = _trimmed(part, lambda word: not content(word) or stem(words(word)[0]) in known)
            if kept:
                runs.append(" ".join(kept))
    return runs


def _is_brief(tool: Tool, parameter: Parameter) -> bool:
    """Whether the guide's examples have names of a word or two for a text, rather than sentences."""
    shown = [example.args.get(parameter.name) for example in tool.guide.examples]
    lengths = [len(each.split()) for each in shown if isinstance(each, str)]
    return bool(lengths) and max(lengths) <= 2


def _blanked(tool: Tool, speech: Speech) -> str:
    """The user's words with a gap for everything that has a type of its own."""
    said = speech.said
    spans = [*_time_spans(tool, speech), *(each.span for each in (*emails(said), *urls(said), *ids(said)))]
    kinds = {each.kind for each in tool.parameters}
    if Kind.NUMBER in kinds:
        spans += [each.span for each in amounts(said)]
    for kind in kinds & CODES - {Kind.ZONE}:
        spans += [Span(each.start, each.end) for each in codes.mentions(kind, said)]
    return masked(said, ((each, _GAP * (each.end - each.start)) for each in _merged(spans)))


def _trimmed(run: list[str], is_empty: Callable[[str], bool]) -> list[str]:
    while run and is_empty(run[0]):
        run = run[1:]
    while run and is_empty(run[-1]):
        run = run[:-1]
    return run


def _known(tool: Tool) -> frozenset[str]:
    """The words with which the tool speaks of itself, and those around the values of its examples."""
    said = set()
    for example in tool.guide.examples:
        values = {stem(word) for value in example.args.values() for word in words(str(value))}
        said |= {stem(word) for word in words(example.says)} - values
    return tool.vocabulary | said


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged
