"""Amounts as arguments: which number of an utterance belongs to which of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jackfield_local.language.amounts import Amount, amounts, bare_amount, forms
from jackfield_local.language.spans import Span
from jackfield_local.language.words import STOP, content, name_words, stem, words
from jackfield_local.planner.filling import nested, times
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.manner import value_at
from jackfield_local.planner.reading.tool import Parameter, Tool

NUMERIC = frozenset((Kind.AMOUNT, Kind.COUNT, Kind.LENGTH))
"""Kinds of values that a bare number can be."""

_ENOUGH = 1.0
_ENOUGH_UNASKED = 2.0
_WORD_BESIDE = 2.0
_LITTLE_WORD_BESIDE = 1.0
_NAMED = (3.0, 2.8, 2.5)
"""For its name right before a number, right after it, and a word further before."""
_RATES = frozenset(map(stem, ("percent", "percentage", "rate", "share")))


class Found(NamedTuple):
    """The value of an argument, and where it was said."""

    parameter: Parameter
    value: Any
    span: Span


class _Place(NamedTuple):
    """A number among its words: the two before it and the one after."""

    amount: Amount
    before: tuple[str, ...]
    after: str


def found(tool: Tool, heard: Heard, taken: Sequence[Span], known: Mapping[str, Any]) -> list[Found]:
    """The numbers that belong to an argument by an example, or by a word beside them."""
    return _matched(tool, heard, *_unsettled(tool, heard, taken, known))


def left_alone(tool: Tool, heard: Heard, taken: Sequence[Span], known: Mapping[str, Any]) -> list[Found]:
    """The one number that nothing took, for the one argument that cannot be left out."""
    leaves, places = _unsettled(tool, heard, taken, known)
    needed = [parameter for parameter, needs in leaves if needs]
    if len(needed) != 1 or len(places) != 1:
        return []
    value = _valued(tool, needed[0], heard, places[0])
    return [] if value is None else [Found(needed[0], value, places[0].amount.span)]


def given(tool: Tool, known: Mapping[str, Any]) -> list[Any]:
    """The amounts that are known already."""
    return [value_at(known, parameter.path) for parameter, _ in _leaves(tool.parameters, needed=True)]


def _unsettled(
    tool: Tool, heard: Heard, taken: Sequence[Span], known: Mapping[str, Any]
) -> tuple[list[tuple[Parameter, bool]], list[_Place]]:
    """The amounts that are not known, with whether they are needed, and the numbers that nothing took."""
    closed = [*taken, *(each.span for each in (*heard.emails, *heard.urls, *heard.ids, *heard.quotes))]
    places = [
        each for each in _places(heard.request) if not any(each.amount.span.overlaps(span) for span in closed)
    ]
    leaves = []
    for parameter, needed in _leaves(tool.parameters, needed=True):
        value = value_at(known, parameter.path)
        if value is None:
            leaves.append((parameter, needed))
        elif parameter.kind is not Kind.LENGTH:
            said = next((each for each in places if value in forms(each.amount)), None)
            places = [each for each in places if each is not said]  # It was said for that alone.
    return leaves, places


def answered(parameter: Parameter, heard: Heard) -> Amount | None:
    """The number that answers the question for an argument: one alone, with or without a unit."""
    if parameter.kind is Kind.LENGTH and heard.length is not None:
        return None
    said = amounts(heard.request)
    return bare_amount(heard.request) or (said[0] if len(said) == 1 else None)


def fitting(tool: Tool, parameter: Parameter, amount: Amount) -> Any:
    """The amount as the schema takes it, or nothing; a percentage is a fraction where examples say so."""
    meant = forms(amount)
    for value in reversed(meant) if _as_fraction(tool, parameter) else meant:
        number = int(value) if value.is_integer() else value
        shaped = [number] if parameter.many else number
        if nested.fits(parameter, shaped):
            return shaped
    return None


def _as_fraction(tool: Tool, parameter: Parameter) -> bool:
    return any(
        value_at(example.args, parameter.path) in forms(shown)[1:]
        for example in tool.guide.examples
        for shown in amounts(example.says)
    )


def _leaves(parameters: Sequence[Parameter], *, needed: bool) -> Iterator[tuple[Parameter, bool]]:
    """The amounts among parameters and inside them, each with whether it cannot be left out."""
    for parameter in parameters:
        needs = needed and parameter.required
        if parameter.kind is Kind.OBJECT:
            yield from _leaves(parameter.children, needed=needs)
        elif not parameter.many and (
            parameter.kind is Kind.AMOUNT
            or (parameter.kind in NUMERIC and needs and parameter.outer)
            or (parameter.kind is Kind.COUNT and needs)
        ):
            yield parameter, needs


def _matched(
    tool: Tool, heard: Heard, leaves: list[tuple[Parameter, bool]], places: list[_Place]
) -> list[Found]:
    """Pairs that belong together, the surest first; where two are as sure, neither is taken."""
    sure: list[tuple[float, Parameter, _Place, Any]] = []
    for parameter, needed in leaves:
        own = _own_words(parameter, [each for each, _ in leaves])
        for place in places:
            value = _valued(tool, parameter, heard, place)
            score = _by_words(parameter, own, place, named_only=not needed) + _by_example(
                tool, parameter, place
            )
            if value is not None and score >= (_ENOUGH if needed else _ENOUGH_UNASKED):
                sure.append((score, parameter, place, value))
    matched: list[Found] = []
    while sure:
        best = max(sure, key=lambda each: each[0])
        rivals = [each for each in sure if each[0] == best[0] and (each[1] is best[1] or each[2] is best[2])]
        if len(rivals) == 1:
            matched.append(Found(best[1], best[3], best[2].amount.span))
        gone = {id(each[1]) for each in rivals}, {id(each[2]) for each in rivals}
        sure = [each for each in sure if id(each[1]) not in gone[0] and id(each[2]) not in gone[1]]
    return matched


def _valued(tool: Tool, parameter: Parameter, heard: Heard, place: _Place) -> Any:
    if parameter.kind is Kind.LENGTH and heard.length is not None:
        return times.length(parameter, heard)
    return fitting(tool, parameter, place.amount)


def _own_words(parameter: Parameter, leaves: Sequence[Parameter]) -> tuple[set[str], set[str]]:
    """The stems of an argument's name and of its description that no other amount has."""
    names = {stem(word) for word in name_words(parameter.name)}
    told = set(content(parameter.description)) | names
    for other in leaves:
        if other is not parameter:
            shared = {stem(word) for word in name_words(other.name)}
            told -= shared | set(content(other.description))
            names -= shared
    return names, told


def _by_words(
    parameter: Parameter, own: tuple[set[str], set[str]], place: _Place, *, named_only: bool
) -> float:
    names, told = own
    nearest = place.before[-1:] or ("",)
    beside = [*nearest, place.after, *place.before[:-1]]
    stems = [stem(word) if word not in STOP else "" for word in beside]
    if named := [score for word, score in zip(stems, _NAMED, strict=False) if word in names]:
        return named[0]
    if place.amount.percent:
        about = {stem(word) for word in (*name_words(parameter.name), *words(parameter.description))}
        return _NAMED[0] if about & _RATES else 0.0
    return _WORD_BESIDE if set(stems) & told and not named_only else 0.0


def _by_example(tool: Tool, parameter: Parameter, place: _Place) -> float:
    """How much a number stands as the examples have it: the same words before and after."""
    best = 0.0
    for example in tool.guide.examples:
        value = value_at(example.args, parameter.path)
        for shown in _places(example.says) if isinstance(value, int | float) else ():
            if value in forms(shown.amount):
                likeness = _beside(shown.before[-1:], place.before[-1:])
                likeness += _beside((shown.after,), (place.after,))
                likeness += _WORD_BESIDE if shown.amount.percent and place.amount.percent else 0.0
                best = max(best, likeness)
    return best


def _beside(shown: tuple[str, ...], said: tuple[str, ...]) -> float:
    if not any(shown) or [stem(each) for each in shown] != [stem(each) for each in said]:
        return 0.0
    return _LITTLE_WORD_BESIDE if shown[0] in STOP else _WORD_BESIDE


def _places(text: str) -> list[_Place]:
    """The amounts of a text, each with the words between it and its neighbours."""
    said = amounts(text)
    edges = [0, *(each.span.end for each in said)]
    begins = [*(each.span.start for each in said), len(text)]
    return [
        _Place(
            each,
            tuple(words(text[edges[index] : each.span.start])[-2:]),
            next(iter(words(text[each.span.end : begins[index + 1]])), ""),
        )
        for index, each in enumerate(said)
    ]
