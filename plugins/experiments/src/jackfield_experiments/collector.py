"""Counts the calls, follow-ups and shadows of sessions that take part in an experiment."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from jackfield.contract.tool import Failure, ToolResponse
from jackfield.experiments.assignment import CONTROL, Assignment
from jackfield.governance import Call
from jackfield.orchestrator import Observer
from jackfield.session.session import Session
from jackfield.shadow import ShadowOutcome, ShadowResult

from jackfield_experiments.figures import Figures, MeasuredCall

MAX_WAITING = 100_000
"""How many calls wait to be counted; the oldest are dropped."""

AT_ONCE = 300
"""How many calls are counted before other tasks get a turn; this takes about a millisecond."""

MAX_TURNS = 20_000
"""How many sessions the collector remembers for follow-ups."""


class _Observed(NamedTuple):
    """What is kept of a call on the call path; the rest is computed later, elsewhere."""

    session: Session
    tool_id: str
    turn: int
    failure: Failure | None
    invocations: int
    ended_by: str
    seconds: float
    size: int
    replayed: bool


_observe = tuple.__new__


class CallCollector(Observer):
    """Keeps calls on the call path, and counts them when asked."""

    def __init__(self) -> None:
        self._waiting: deque[_Observed] = deque(maxlen=MAX_WAITING)
        self._figures = Figures()
        self._last_turns: dict[tuple[str, str], int] = {}
        """The turn of the last call, by session and tool."""

    def call_finished(self, call: Call, response: ToolResponse) -> None:
        """Keep what is needed of a call; runs on the call path."""
        tool = call.tool
        if tool.experiment:
            self._waiting.append(
                _observe(
                    _Observed,
                    (
                        call.session, tool.id, call.turn.number, response.failure, call.invocations,
                        call.ended_by, call.finished_at - call.started_at, len(call.encoded_data), call.replayed,
                    ),
                )
            )  # fmt: skip

    def session_opened(self, session: Session, *, prompt_tokens: int, declaration_tokens: int) -> None:  # noqa: ARG002
        """Count a session in each of its arms."""
        if session.toolset is not None:
            for each in session.toolset.assignments.values():
                self._figures.of(each.key, each.arm).sessions += 1

    def shadow_finished(self, result: ShadowResult) -> None:
        """Count a comparison: the tool as control, the shadow as the variant."""
        key, arm, group = result.assignment.key, result.assignment.arm, result.assignment.group
        variant = self._figures.of(key, arm)
        variant.outcomes[result.outcome] += 1
        if result.outcome is ShadowOutcome.SKIPPED:
            return
        served, ran = result.served_seconds * 1000, result.seconds * 1000
        control = MeasuredCall(group, served, result.served_bytes, result.served_error)
        self._figures.of(key, CONTROL).add_call(control)
        variant.add_call(MeasuredCall(group, ran, result.bytes, result.error))

    async def collect(self) -> Figures:
        """Count the calls that wait, and return everything that was counted since the last time."""
        waiting, self._waiting = self._waiting, deque(maxlen=MAX_WAITING)
        for number, observed in enumerate(waiting, 1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            toolset = observed.session.toolset
            assignment = toolset.assignments.get(observed.tool_id) if toolset else None
            if assignment is not None and not assignment.shadow and not observed.replayed:
                self._count(observed, assignment)
        figures, self._figures = self._figures, Figures()
        return figures

    def _count(self, observed: _Observed, assignment: Assignment) -> None:
        figures = self._figures.of(assignment.key, assignment.arm)
        if not observed.invocations:
            figures.refusals[observed.ended_by or "other"] += 1
            return
        last = (observed.session.id, observed.tool_id)
        before = self._last_turns.pop(last, None)
        self._last_turns[last] = observed.turn
        if len(self._last_turns) > MAX_TURNS:
            del self._last_turns[next(iter(self._last_turns))]
        failure = observed.failure
        figures.add_call(
            MeasuredCall(
                assignment.group,
                observed.seconds * 1000,
                observed.size,
                None if failure is None else failure.type,
                repeats=before == observed.turn,
                returns=before == observed.turn - 1,
            )
        )
