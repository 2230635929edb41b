"""Late outcomes, of calls for which the model already has a response: approved calls and calls in doubt.

Every outcome is read from the call's claim (`jackfield.ledger`). So it does not matter which process ran the
call, whether that process is alive, or who settled the call. The clients and the model learn each state once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import orjson
from jackfield.call_events import call_outcome
from jackfield.call_states import CallState, in_doubt, response_of, state_of
from jackfield.confirmation import PendingConfirmation
from jackfield.orchestrator import CallResult
from jackfield.protocol.codec import event_fields
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.store import StoreUnavailableError

from jackfield_sessions.checkpoint import Checkpoint
from jackfield_sessions.guides import OmittedGuides

_log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""Seconds between two checks of a call that another process runs, or that is in doubt."""

MAX_OUTCOMES = 200
"""How many late outcomes are remembered."""

OPEN = (CallState.RUNNING, CallState.IN_DOUBT, CallState.UNKNOWN)
"""States that are not final."""


UNKNOWN_CONFIRMATION = (
    "unknown_confirmation",
    "This session has no such confirmation, or the confirmation is older than 24 hours.",
    "Check the outcome of the call in the conversation or in the session's events.",
)
"""The error for an unknown token: code, message, suggestion."""


def contradicts(state: CallState, *, approve: bool) -> bool:
    """Return whether a decision contradicts the earlier one."""
    return approve is (state in (CallState.DECLINED, CallState.EXPIRED))


def decided_before(state: CallState) -> str:
    """Return why a decision had no effect."""
    match state:
        case CallState.DECLINED:
            return "This call has already been declined; it was not run."
        case CallState.EXPIRED:
            return "The confirmation expired before a decision arrived; the call was not run."
        case CallState.IN_DOUBT:
            return "This call has already been approved; it may or may not have taken effect."
        case CallState.RUNNING:
            return "This call has already been approved; it is running."
        case CallState.UNKNOWN:
            return "The session store is unavailable, so the state of this call is unknown."
    return "This call has already been approved; its outcome is final."


class LateOutcomes:
    """Resolves confirmations, and reports late outcomes to the clients and the model."""

    def __init__(
        self,
        runtime: Runtime,
        session: Session,
        checkpoint: Checkpoint,
        guides: OmittedGuides,
        send_context: Callable[[str], Awaitable[None]],
    ) -> None:
        """`send_context` sends the model a text that it should answer."""
        self._runtime = runtime
        self._session = session
        self._checkpoint = checkpoint
        self._guides = guides
        self._send_context = send_context
        self._running = 0
        self._open: dict[str, PendingConfirmation] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}

    @property
    def running(self) -> bool:
        """True while an approved call is running here."""
        return self._running > 0

    async def resolve(self, token: str, *, approve: bool) -> CallResult | None:
        """Carry out the user's decision and tell the model the outcome; return None for an unknown token."""
        self._running += 1
        try:
            answer = await self._runtime.resolve_confirmation(self._session, token, approve=approve)
        finally:
            self._running -= 1
        if answer is not None:
            await self._report(answer)
        return answer

    async def restore(self) -> None:
        """Before the model is connected, report decisions that were made while the session was not live."""
        for pending in await self._runtime.confirmations.for_session(self._session.id):
            status = await self._runtime.ledger.status_of(pending)
            if status.wire is not None:
                answer = _recorded(pending.run_key, pending.tool_id, pending.call_id, status.wire)
                await self._report(answer, publish=True, connected=False)
            elif status.state in OPEN:
                self._open[pending.run_key] = pending

    async def resume(self) -> None:
        """Watch calls without an outcome: approved calls that another process runs, and calls in doubt."""
        for pending in self._open.values():
            status = await self._runtime.ledger.status_of(pending)
            if status.state is CallState.IN_DOUBT:
                # This takes the whole call path: the call is audited, and runs again if that is safe.
                await self._report(await self._runtime.resolve_pending(self._session, pending, approve=True))
            else:
                self._watch(pending.run_key, pending.tool_id, pending.call_id)
        self._open.clear()
        for key, (tool_id, call_id) in list(self._checkpoint.unsettled.items()):
            self._watch(key, tool_id, call_id)

    def watch(self, answer: CallResult) -> None:
        """Watch a call whose outcome is not final, to report it later."""
        if answer.response.failure is None or not answer.key:
            return
        state = state_of(answer.wire)
        if state in OPEN:
            self._checkpoint.outcomes[answer.key] = state.value
            self._watch(answer.key, answer.tool_id, answer.call_id)

    def close(self) -> None:
        """Stop watching; the process that resumes the session continues."""
        for task in self._watches.values():
            task.cancel()

    async def _report(self, answer: CallResult, *, publish: bool = False, connected: bool = True) -> None:
        """Tell the model an outcome that it does not know; with `publish`, publish it too."""
        key, state, outcomes = answer.key, state_of(answer.wire), self._checkpoint.outcomes
        if state in OPEN:
            self._watch(key, answer.tool_id, answer.call_id)
        else:
            self._checkpoint.unsettled.pop(key, None)
        if outcomes.get(key) == state.value:
            return
        if publish:
            # The host that received the decision may have published it before it died or lost the session.
            self._session.publish(*event_fields(call_outcome(answer)), once=True)
        outcomes[key] = state.value
        while len(outcomes) > MAX_OUTCOMES:
            del outcomes[next(iter(outcomes))]
        self._checkpoint.add_call(answer)
        await self._checkpoint.save(session=True)
        if connected:
            await self._send_context(self._sentence(state, answer))

    def _watch(self, key: str, tool_id: str, call_id: str | None) -> None:
        self._checkpoint.unsettled[key] = (tool_id, call_id)
        if key not in self._watches or self._watches[key].done():
            self._watches[key] = asyncio.create_task(_guarded(self._follow(key, tool_id, call_id)))

    async def _follow(self, key: str, tool_id: str, call_id: str | None) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                status = await self._runtime.ledger.status(key)
            except StoreUnavailableError:
                continue
            if status.state in (CallState.WAITING, CallState.NEVER_RUN) and status.wire is None:
                # The process released the claim before the call ran; there is nothing to report.
                self._checkpoint.unsettled.pop(key, None)
                return
            reported = self._checkpoint.outcomes.get(key)
            if status.state is CallState.RUNNING or status.state.value == reported:
                continue
            wire = status.wire or _in_doubt(tool_id)
            await self._report(_recorded(key, tool_id, call_id, wire), publish=True)
            if status.state not in OPEN:
                return

    def _sentence(self, state: CallState, answer: CallResult) -> str:
        """Return the sentence that tells the model about an outcome."""
        call = f"the call to {answer.tool_id}"
        match state:
            case CallState.DECLINED:
                return f"The user declined {call}; it was not run. Do not call it again unless the user asks."
            case CallState.EXPIRED:
                return f"The user did not decide on {call} in time; it was not run."
            case CallState.RUNNING:
                return f"The user approved {call}; it is still running. Its answer will arrive automatically."
        text = self._guides.encode(answer).decode()
        if state in (CallState.IN_DOUBT, CallState.UNKNOWN):
            return f"It is not known whether {call} took effect. Do not repeat it; tell the user. {text}"
        known = (
            "The user approved" if answer.key.startswith("approved/") else "An outcome has been recorded for"
        )
        return f"{known} {call}. Its answer: {text}"


async def _guarded(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 - a watch that fails must not end the session
        _log.exception("the outcome of a call could not be reported")


def _recorded(key: str, tool_id: str, call_id: str | None, wire: bytes) -> CallResult:
    return CallResult(tool_id, call_id, response_of(wire), wire, wire.decode(), key, replayed=True)


def _in_doubt(tool_id: str) -> bytes:
    return orjson.dumps(in_doubt().with_meta(toolId=tool_id, duration=0.0).to_wire())
