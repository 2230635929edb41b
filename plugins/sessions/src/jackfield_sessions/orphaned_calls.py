"""Calls whose host died while they ran: another host continues them, or publishes what is known.

A client that reconnects learns the state of its calls when its session resumes. But the client may never
reconnect, and a client that follows the events of a session over HTTP has no session to resume. So every host
looks for calls in doubt regularly. If a capability knows that a call had no effect, the call runs again under
its own key, or is settled as failed. Otherwise the call stays in doubt, because nothing may take effect
twice, and an operator settles it. In each case the outcome is published once.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import orjson
from jackfield import ToolCall, ToolResponse
from jackfield.call_events import call_outcome
from jackfield.call_states import CallState, in_doubt, response_of, state_of
from jackfield.call_takeover import may_run_again
from jackfield.confirmation import APPROVED
from jackfield.ledger import OUTCOME_SECONDS, DoubtfulCall, is_stable, stable_key
from jackfield.orchestrator import CallResult
from jackfield.protocol.codec import event_fields
from jackfield.registry.registry import RegistryError
from jackfield.runtime import Runtime
from jackfield.session.session import Session, SessionFormatError
from jackfield.store import ClaimState, StoreUnavailableError
from jackfield.strict_json import StrictJsonError, parse_arguments

from jackfield_sessions.direct_calls import DirectCalls
from jackfield_sessions.events import (
    EventLog,
    QueuedEvent,
    answered_calls,
    events_for_call,
    may_publish_outcome,
)

_log = logging.getLogger(__name__)

_UNKNOWN = (CallState.RUNNING, CallState.IN_DOUBT, CallState.UNKNOWN)

MAX_KNOWN = 10_000
"""How many calls are remembered as handled; beyond that, the store is asked again."""


@runtime_checkable
class SettlesCalls(Protocol):
    """A capability that may know the outcome of a call whose host died."""

    async def settle(self, call: DoubtfulCall) -> ToolResponse | None:
        """Return the outcome of a call in doubt, or None if it is not certain."""


class OrphanedCalls:
    """Finds the calls of hosts that died; exactly one host handles each call."""

    def __init__(self, runtime: Runtime, direct_calls: DirectCalls) -> None:
        self._runtime = runtime
        self._direct_calls = direct_calls
        self._known: set[str] = set()
        self._continued: dict[str, asyncio.Task[None]] = {}
        """The calls that run again here, by key."""

    async def sweep(self) -> None:
        """Handle the calls in doubt that have not been handled yet."""
        try:
            for call in await self._runtime.ledger.in_doubt():
                if call.key not in self._known and call.key not in self._continued:
                    await self._handle(call)
        except StoreUnavailableError as error:
            _log.warning("cannot look for the calls of hosts that died: %s", error)
        except Exception:  # noqa: BLE001 - capabilities are third-party code
            _log.exception("a call of a host that died could not be handled")

    async def _handle(self, call: DoubtfulCall) -> None:
        store, key = self._runtime.store, f"orphaned/{call.session_id}/{call.key}"
        claim = await store.claim(key, b"", ttl=OUTCOME_SECONDS, durable=False)
        if claim.state is ClaimState.IN_DOUBT and await store.reclaim(key):
            # The host that was handling the call died too.
            claim = claim._replace(state=ClaimState.RUN)
        if claim.state is ClaimState.DONE:
            self._remember(call)
        if claim.state is not ClaimState.RUN:
            return
        try:
            session = await self._session_to_continue(call)
            if session is None:
                await self._publish(call, await self._settle(call) or _in_doubt(call))
        except BaseException:
            await store.release(key)
            raise
        if session is None:
            self._remember(call)
            await store.complete(key, b"", durable=False)
        else:
            # In a task, because the call may take minutes, and the next call in doubt must not wait for it.
            self._continued[call.key] = asyncio.create_task(self._continue(call, session, key))

    def _remember(self, call: DoubtfulCall) -> None:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known.add(call.key)

    async def _session_to_continue(self, call: DoubtfulCall) -> Session | None:
        """Return the session in which this host runs the call again; None if the call must not run again."""
        runtime, tool = self._runtime, self._runtime.registry.get(call.tool_id)
        args = _arguments(call)
        if tool is None or args is None:
            return None
        # The id has to lead to the same claim again, and approved calls are found by their confirmation.
        is_same = call.call_id is not None and call.key == stable_key(call.session_id, call.call_id)
        if not (is_same and is_stable(call.call_id)) and not call.key.startswith(APPROVED):
            return None
        if not await may_run_again(runtime.capabilities, tool, call.session_id, args):
            return None
        try:
            return await self._direct_calls.load(call.session_id)
        except RegistryError as error:
            _log.warning("call %s of a host that died cannot be continued: %s", call.key, error)
            return None

    async def _continue(self, call: DoubtfulCall, session: Session, key: str) -> None:
        """Deliver the call again, which takes over its claim, and publish the outcome."""
        store = self._runtime.store
        _log.info("the host of call %s (%s) died; this host continues it", call.key, call.tool_id)
        try:
            answer = await self._deliver(call, session)
            if answer is not None and state_of(answer.wire) not in _UNKNOWN:
                await self._publish(call, answer.wire)
                await store.complete(key, b"", durable=False)
                return
        except StoreUnavailableError as error:
            _log.warning("call %s of a host that died cannot be continued now: %s", call.key, error)
        except Exception:  # noqa: BLE001 - capabilities are third-party code
            _log.exception("call %s of a host that died could not be continued", call.key)
        finally:
            del self._continued[call.key]
        # If the call is still in doubt, a host will handle it again.
        with suppress(StoreUnavailableError):
            await store.release(key)

    async def _deliver(self, call: DoubtfulCall, session: Session) -> CallResult | None:
        if call.key.startswith(APPROVED):
            pending = await self._runtime.confirmations.for_run(call.key)
            if pending is None:
                return None
            return await self._direct_calls.resolve_pending(session, pending)
        return await self._direct_calls.run(
            session, ToolCall(call.tool_id, call.arguments, call.call_id), again=True
        )

    async def _settle(self, call: DoubtfulCall) -> bytes | None:
        """Record the outcome of a call if a capability that its tool requires is certain of the outcome."""
        tool = self._runtime.registry.get(call.tool_id)
        for name in tool.manifest.requires if tool is not None else ():
            capability = self._runtime.capabilities.get(name)
            if isinstance(capability, SettlesCalls) and (response := await capability.settle(call)):
                by = f"host {self._runtime.hosts.name}"
                return await self._runtime.settle_call(call.key, ran=False, by=by, response=response)
        _log.warning(
            "the host of call %s (%s) died, and the call may or may not have taken effect; an operator can "
            "settle it",
            call.key,
            call.tool_id,
        )
        return None

    async def _publish(self, call: DoubtfulCall, wire: bytes) -> None:
        """Append the outcome to the session's events, unless the session's owner publishes it."""
        store = self._runtime.store
        if call.call_id is None or not await may_publish_outcome(store, call.session_id, call.call_id):
            return
        try:
            session = await Session.resume(call.session_id, store)
        except SessionFormatError:
            return
        if session is None or call.call_id in answered_calls(
            await events_for_call(session, store, call.call_id)
        ):
            return
        answer = CallResult(
            call.tool_id, call.call_id, response_of(wire), wire, wire.decode(), call.key, replayed=True
        )
        log = EventLog(session, store, owned=False)
        await log.append([QueuedEvent(*event_fields(call_outcome(answer)))])


def _arguments(call: DoubtfulCall) -> dict[str, Any] | None:
    """Return the arguments of a call; None if they were truncated in the claim's note."""
    try:
        return parse_arguments(call.arguments)[0]
    except StrictJsonError:
        return None


def _in_doubt(call: DoubtfulCall) -> bytes:
    meta: dict[str, Any] = {"toolId": call.tool_id, "duration": 0.0}
    return orjson.dumps(in_doubt().with_meta(**meta).to_wire())
