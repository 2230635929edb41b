"""A question that was not answered: asked again, but not for ever."""

from __future__ import annotations

from dataclasses import replace

from jackfield_local.planner.deciding.asking import bounds_of
from jackfield_local.planner.deciding.moves import Move, Question, Say
from jackfield_local.planner.reading.tool import Parameter

OFTEN_ENOUGH = 2
"""So often a question is asked, and then left."""


def again(question: Question) -> Move:
    """The same question, until it was asked often enough."""
    if question.times >= OFTEN_ENOUGH:
        return Say("I leave it, as something is still missing. You may say it all again.")
    return replace(question, times=question.times + 1)


def ask_within_bounds(question: Question, missing: Parameter) -> Move:
    """After a number that the schema does not take: what it takes is told, and asked for once more."""
    told = bounds_of(missing)
    if question.times >= OFTEN_ENOUGH:
        return Say(f"{told} I leave it. You may say it all again.")
    return replace(question, text=f"{told} Which number should it be?", times=question.times + 1)
