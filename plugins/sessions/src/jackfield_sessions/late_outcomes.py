"""Outcomes that come after their call was answered: approved calls, and calls in doubt that are settled.

Every outcome is read from the call's claim (`jackfield.ledger`), so it does not matter which process ran the
call, whether that process lives, or who settled it. The client and the model are told once per state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import orjson
from jackfield.call_events import call_outcome
from jackfield.confirmation import PendingConfirmation
from jackfield.orchestrator import Answer
from jackfield.outcomes import CallState, in_doubt, response_of, state_of
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.store import StoreUnavailableError

from jackfield_sessions.journal import Journal

_log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often to look at a call that another process runs, or that is in doubt."""

OUTCOMES = 200
"""How many outcomes that were reported late are remembered."""

OPEN = (CallState.RUNNING, CallState.IN_DOUBT, CallState.UNKNOWN)
"""The states that another one follows."""


class LateOutcomes:
    """Carries out decisions, and reports what became of the calls they were about."""

    def __init__(
        self,
        runtime: Runtime,
        session: Session,
        journal: Journal,
        tell_model: Callable[[str, bool], Awaitable[None]],
        *,
        encode: Callable[[Answer], bytes],
    ) -> None:
        """`tell_model` takes a text, and whether the model should answer it.

        `encode` gives an answer as the model gets it.
        """
        self._runtime = runtime
        self._session = session
        self._journal = journal
        self._tell_model = tell_model
        self._encode = encode
        self._running = 0
        self._open: dict[str, PendingConfirmation] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}

    @property
    def running(self) -> bool:
        """Whether an approved call is running here."""
        return self._running > 0

    async def resolve(self, token: str, *, approve: bool) -> Answer | None:
        """Carry out the user's decision; what became of the call, or nothing for an unknown token."""
        self._running += 1
        try:
            answer = await self._runtime.resolve_confirmation(self._session, token, approve=approve)
        finally:
            self._running -= 1
        if answer is not None:
            await self._report(answer, respond=True)
        return answer

    async def restore(self) -> None:
        """Learn what was decided while nobody held the session; before the model is reached."""
        for pending in await self._runtime.confirmations.of_session(self._session.id):
            status = await self._runtime.ledger.status_of(pending)
            if status.wire is not None:
                answer = _answer(pending.run_key, pending.tool_id, pending.call_id, status.wire)
                await self._report(answer, publish=True)
            elif status.state in OPEN:
                self._open[pending.run_key] = pending

    async def resume(self) -> None:
        """Follow what has no outcome yet: approved calls of another process, and calls in doubt."""
        for pending in self._open.values():
            status = await self._runtime.ledger.status_of(pending)
            if status.state is CallState.IN_DOUBT:
                # By the whole path of a call: the audit gets a line, and what may be repeated runs again.
                answer = await self._runtime.resolve_pending(self._session, pending, approve=True)
                await self._report(answer, respond=True)
            else:
                self._watch(pending.run_key, pending.tool_id, pending.call_id)
        self._open.clear()
        for key, (tool_id, call_id) in list(self._journal.doubts.items()):
            self._watch(key, tool_id, call_id)

    def watch(self, answer: Answer) -> None:
        """Report what becomes of a call that the model was told is running or in doubt."""
        if answer.response.failure is None or not answer.key:
            return
        state = state_of(answer.wire)
        if state in OPEN:
            self._journal.outcomes[answer.key] = state.value
            self._watch(answer.key, answer.tool_id, answer.call_id)

    def close(self) -> None:
        """Stop watching; whoever resumes the session goes on with it."""
        for task in self._watches.values():
            task.cancel()

    async def _report(self, answer: Answer, *, respond: bool | None = None, publish: bool = False) -> None:
        """Tell the model, unless it knows, and with `publish` the client.

        Without `respond` the model is not reached yet.
        """
        key, state, outcomes = answer.key, state_of(answer.wire), self._journal.outcomes
        if state in OPEN:
            self._watch(key, answer.tool_id, answer.call_id)
        else:
            self._journal.doubts.pop(key, None)
        if outcomes.get(key) == state.value:
            return
        if publish:
            # The host that took the decision may have published it before it died, or lost the session.
            self._session.publish(*call_outcome(answer), once=True)
        outcomes[key] = state.value
        while len(outcomes) > OUTCOMES:
            del outcomes[next(iter(outcomes))]
        self._journal.memory.add_call(answer.tool_id, answer.wire)
        await self._journal.keep(counters=True)
        if respond is not None:
            await self._tell_model(_sentence(state, answer, self._encode), respond)

    def _watch(self, key: str, tool_id: str, call_id: str | None) -> None:
        self._journal.doubts[key] = (tool_id, call_id)
        if key not in self._watches or self._watches[key].done():
            self._watches[key] = asyncio.create_task(_guarded(self._follow(key, tool_id, call_id)))

    async def _follow(self, key: str, tool_id: str, call_id: str | None) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                status = await self._runtime.ledger.status(key)
            except StoreUnavailableError:
                continue
            if status.state in (CallState.WAITING, CallState.NEVER_RUN) and status.wire is None:
                # Its process gave it up before it ran: there is nothing to report.
                self._journal.doubts.pop(key, None)
                return
            told = self._journal.outcomes.get(key)
            if status.state is CallState.RUNNING or status.state.value == told:
                continue
            wire = status.wire or _unsettled(tool_id)
            await self._report(_answer(key, tool_id, call_id, wire), respond=True, publish=True)
            if status.state not in OPEN:
                return


async def _guarded(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 - a watch that fails must not end the conversation
        _log.exception("the outcome of a call could not be reported")


def _answer(key: str, tool_id: str, call_id: str | None, wire: bytes) -> Answer:
    return Answer(tool_id, call_id, response_of(wire), wire, wire.decode(), key, replayed=True)


def _unsettled(tool_id: str) -> bytes:
    return orjson.dumps(in_doubt().with_meta(toolId=tool_id, duration=0.0).to_wire())


def _sentence(state: CallState, answer: Answer, encode: Callable[[Answer], bytes]) -> str:
    """What the model is told."""
    call = f"the call of {answer.tool_id}"
    match state:
        case CallState.DECLINED:
            return f"The user declined {call}; it was not run. Do not call it unasked."
        case CallState.EXPIRED:
            return f"The user did not decide about {call} in time; it was not run."
        case CallState.RUNNING:
            return f"The user approved {call}; it is still running. Its answer comes by itself."
    text = encode(answer).decode()
    if state in (CallState.IN_DOUBT, CallState.UNKNOWN):
        return f"It is not known whether {call} took effect. Do not repeat it; tell the user. {text}"
    approved = "The user approved" if answer.key.startswith("approved/") else "It is known now what became of"
    return f"{approved} {call}. Its answer: {text}"
