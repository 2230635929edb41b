"""The answer to a question for one argument: taken for that, whatever else it could mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from jackfield_local.language.spans import without
from jackfield_local.language.words import content
from jackfield_local.planner.filling import amounts, choices, nested, written
from jackfield_local.planner.filling.filler import Filled
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.requests import corrected
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.tool import Parameter, Tool

_LONGEST = 4000
_WORDS = frozenset((Kind.TEXT, Kind.NAME, Kind.OTHER))


class Unfit:
    """An answer was given, and the schema does not take it."""


class Answer(NamedTuple):
    """What an answer leaves to fill the call with."""

    whole: Heard
    """All that was said for the call."""

    known: dict[str, Any]
    value: Any = None
    """What was answered; nothing where it has to be looked for among all that was said."""

    def settle(self, asked: Parameter, filled: Filled) -> Filled:
        """What was asked for is what was answered, whatever else the words could mean."""
        if self.value is not None and not asked.outer:
            filled.args[asked.name] = self.value
            filled.missing = [each for each in filled.missing if each is not asked]
        return filled


def take(
    tool: Tool, asked: Parameter, heard: Heard, said: str, known: Mapping[str, Any] | None
) -> Answer | Unfit:
    """The answer to the question for an argument of a call that was wished for in the words `said`."""
    known = dict(known or {})
    if asked.kind is Kind.WRITTEN:
        # What was asked for word for word is no part of the request.
        known[asked.name] = written.answer(asked, heard.text)
        return Answer(replace(heard, text=said), known)
    value = _answered(tool, asked, heard)
    if isinstance(value, Unfit):
        return value
    if value is not None:
        nested.put(known, asked.path, value)
    return Answer(_together(replace(heard, text=said), heard), known, value)


def _together(before: Heard, heard: Heard) -> Heard:
    """What was said before with what is said now; a length that is said anew takes the place of the other."""
    said = before.text
    if heard.length is not None and before.length is not None:
        said = f"{said[: before.length.span.start]}{said[before.length.span.end :]}"
    now = corrected(heard.text) if says_only_values(heard) else heard.text
    return replace(heard, text=f"{said.rstrip(' .?!')} {now}")


def gives(asked: Parameter, heard: Heard) -> bool:
    """Whether the words may have what was asked for; a value that is known by its form is there or not."""
    found = {
        Kind.MOMENT: heard.when is not None or heard.length is not None,
        Kind.LENGTH: heard.length is not None or heard.when is not None,
        Kind.EMAIL: bool(heard.emails),
        Kind.URL: bool(heard.urls),
        Kind.ZONE: bool(heard.zones),
    }
    return found.get(asked.kind, True)


def says_only_values(heard: Heard) -> bool:
    """Whether nothing is said but times, lengths and addresses, which are no name: "make it an hour"."""
    spans = [*(heard.when.spans if heard.when else ()), *([heard.length.span] if heard.length else ())]
    spans += [each.span for each in heard.emails]
    return bool(spans) and not content(corrected(without(heard.request, spans)))


def _answered(tool: Tool, parameter: Parameter, heard: Heard) -> Any:
    if parameter.kind in _WORDS and not parameter.many:
        if says_only_values(heard):
            return None
        return heard.text.strip().strip('"“”').rstrip(".")[: parameter.schema.get("maxLength", _LONGEST)]
    if parameter.kind in amounts.NUMERIC:
        amount = amounts.answered(parameter, heard)
        if amount is None:
            return None
        value = amounts.fitting(tool, parameter, amount)
        return Unfit() if value is None else value
    if parameter.kind is Kind.CHOICE and parameter.outer:
        said = choices.chosen(parameter, tool, heard, ())
        return said[0][0] if said else None
    return None
