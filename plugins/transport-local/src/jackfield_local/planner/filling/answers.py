"""The answer to a question for one argument: taken for that, whatever else it could mean."""

from __future__ import annotations

from typing import Any

from jackfield_local.planner.filling import amounts, choices
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.tool import Parameter, Tool

_LONGEST = 4000
_WORDS = frozenset((Kind.TEXT, Kind.NAME, Kind.OTHER))


class Unfit:
    """An answer was given, and the schema does not take it."""


def answer_to(tool: Tool, parameter: Parameter, heard: Heard) -> Any:
    """The value that was answered; nothing where it has to be looked for among all that was said."""
    if parameter.kind in _WORDS and not parameter.many:
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
