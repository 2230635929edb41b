"""A question put to a search: in every place it can look, and from its best result to the whole text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jackfield_local.agent.answers import records_in, score_of
from jackfield_local.agent.parameters import Kind, Parameter, Tool
from jackfield_local.agent.values import choice_is_in
from jackfield_local.language.words import stems

MOST, MOST_SPOKEN = 4, 2
"""Searches for one question. The policies allow five and two retrievals in a turn by default."""

_OWN = re.compile(r"\b(?:i|me|my|mine|we|our)\b", re.IGNORECASE)


def searches(tool: Tool, args: Mapping[str, Any], question: str, most: int) -> list[dict[str, Any]]:
    """The arguments of all searches for a question: as usual, narrowed to what it names, in other places.

    A choice that has a default is a place to look in; the answer may be in another one.
    """
    found = [dict(args)]
    choices = [each for each in tool.parameters if each.kind is Kind.CHOICE and not each.many]
    choices = [each for each in choices if not each.required and each.name not in args]
    said = stems(question)
    for parameter in choices:
        found += [{**args, parameter.name: each} for each in parameter.choices if choice_is_in(each, said)]
    for parameter in choices:
        places = [each for each in parameter.choices if each != parameter.schema.get("default")]
        if "default" in parameter.schema:
            places.sort(key=lambda each: _is_own(parameter, each) != bool(_OWN.search(question)))
            found += [{**args, parameter.name: each} for each in places]
    return [each for place, each in enumerate(found) if each not in found[:place]][:most]


def _is_own(parameter: Parameter, choice: Any) -> bool:
    """Whether the description says that a place is the user's own."""
    clauses = re.split(r"[,;:.]", parameter.description)
    return any("user" in stems(each) and choice_is_in(choice, stems(each)) for each in clauses)


def merged(searched: Sequence[Mapping[str, Any]], results: Sequence[Any], question: str) -> Any:
    """The data of several searches as one: every record once, with the score of its best search.

    A search that was narrowed to what the question names is as good as the best one: its scores are raised.
    """
    best = max((score_of(each) for data in results for each in records_in(data)), default=0.0)
    records: dict[str, Mapping[str, Any]] = {}
    for args, data in zip(searched, results, strict=True):
        found = records_in(data)
        own = max(map(score_of, found), default=0.0)
        raised = best / own if own and _is_narrowed(args, question) else 1.0
        for record in found:
            key, score = str(record.get("id", len(records))), score_of(record) * raised
            if key not in records or score_of(records[key]) < score:
                records[key] = {**record, "score": score}
    first = next((data for data in results if isinstance(data, Mapping)), {})
    key = next((name for name, value in first.items() if isinstance(value, list)), "results")
    return {**first, key: sorted(records.values(), key=score_of, reverse=True)}


def _is_narrowed(args: Mapping[str, Any], question: str) -> bool:
    chosen = [value for value in args.values() if isinstance(value, str) and value != question]
    return any(choice_is_in(each, stems(question)) for each in chosen)


def reading(
    tools: Iterable[Tool], search: Tool, record: Mapping[str, Any]
) -> tuple[Tool, dict[str, Any]] | None:
    """The call that fetches a record as a whole: of a tool that takes the ids which the search gives."""
    for tool in tools:
        needed = tool.required
        if tool.writes or tool.confirmed:
            continue
        if len(needed) == 1 and needed[0].kind is Kind.IDENTIFIER and search.id in needed[0].description:
            found = record.get("id")
            return (tool, {needed[0].name: [found] if needed[0].many else found}) if found else None
    return None
