"""Counts the calls, follow-ups and shadows of sessions that take part in an experiment."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from jackfield.contract.tool import ToolResponse
from jackfield.experiments.assignment import CONTROL, Assignment
from jackfield.governance import Call
from jackfield.orchestrator import Observer
from jackfield.session.session import Session
from jackfield.shadow import ShadowOutcome, ShadowResult

from jackfield_experiments.figures import Figures, MeasuredCall

MAX_WAITING = 100_000
"""The maximum number of calls that wait to be counted; beyond that, the oldest are dropped."""

MAX_TURNS = 20_000
"""The maximum number of last calls, by session and tool, that the collector remembers for follow-ups."""


_ENVELOPE = len('{"ok":true,"data":,"intents":[]}}')
"""The length of the constant part of a successful call's envelope."""


class _Observed(NamedTuple):
    """The values that are kept of a call on the call path; all others are computed later."""

    session_id: str
    tool_id: str
    tool_meta: bytes
    turn: int
    milliseconds: float
    characters: int
    """The size of the envelope."""
    error: str | None = None
    invocations: int = 1
    ended_by: str = ""

    @property
    def result_size(self) -> int:
        """The size of the result, without the envelope's information about the tool and the duration.

        Otherwise the name of the variant, and the digits of a longer duration, would count as a difference.
        """
        described = len(self.tool_meta) + len(orjson.dumps(self.milliseconds))
        return self.characters - described - _ENVELOPE


class CallCollector(Observer):
    """Records calls on the call path, and counts them later, when asked."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Any, ...]] = deque(maxlen=MAX_WAITING)
        self._assigned: dict[str, Mapping[str, Assignment]] = {}
        """The assignments by tool, for each session with calls that wait."""
        self._figures = Figures()
        self._last_turns: dict[tuple[str, str], int] = {}
        """The turn of the last call, by session and tool."""

    def call_finished(self, call: Call, response: ToolResponse) -> None:
        """Record the values of a call that are counted later; runs on the call path."""
        tool = call.tool
        if not tool.experiment or call.replayed:
            return
        session_id = call.session.id
        if session_id not in self._assigned:
            self._assign(call.session)
        # A plain tuple of plain values, which the garbage collector does not track; one that refers to the
        # session would cost three times as much.
        if response.failure is None:
            self._waiting.append(
                (
                    session_id, tool.id, tool.meta_bytes, call.turn.number, call.duration_ms, len(call.text),
                )
            )  # fmt: skip
        else:
            self._waiting.append(
                (
                    session_id, tool.id, tool.meta_bytes, call.turn.number, call.duration_ms, len(call.text),
                    str(response.failure.type), call.invocations, call.ended_by,
                )
            )  # fmt: skip

    def _assign(self, session: Session) -> None:
        self._assigned[session.id] = session.toolset.assignments if session.toolset else {}

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

    def drain(self, most: int = MAX_WAITING) -> bool:
        """Count up to `most` of the calls that wait; return whether there are more."""
        waiting = self._waiting
        for _ in range(min(most, len(waiting))):
            observed = _Observed(*waiting.popleft())
            assignment = self._assigned[observed.session_id].get(observed.tool_id)
            if assignment is not None and not assignment.shadow:
                self._count(observed, assignment)
        if not waiting:
            self._assigned.clear()
        return bool(waiting)

    def take(self) -> Figures:
        """Return the figures that were counted since the last call of this method."""
        figures, self._figures = self._figures, Figures()
        return figures

    def _count(self, observed: _Observed, assignment: Assignment) -> None:
        figures = self._figures.of(assignment.key, assignment.arm)
        if not observed.invocations:
            figures.refusals[observed.ended_by or "other"] += 1
            return
        last, turn = (observed.session_id, observed.tool_id), observed.turn
        before = self._last_turns.pop(last, None)
        self._last_turns[last] = turn
        if len(self._last_turns) > MAX_TURNS:
            del self._last_turns[next(iter(self._last_turns))]
        figures.add_call(
            MeasuredCall(
                assignment.group,
                observed.milliseconds,
                observed.result_size,
                observed.error,
                repeats=before == turn,
                returns=before == turn - 1,
            )
        )
