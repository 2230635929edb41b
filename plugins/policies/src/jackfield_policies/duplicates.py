"""The same call twice is run once: after a reconnect, on another host, while it runs, after a crash."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import orjson
from jackfield import ErrorType, Failure, Intent, ToolResponse, fail
from jackfield.governance import Call, Proceed
from jackfield.offers import PluginSettings, Services
from jackfield.orchestrator import policy_failed
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.store import Claim, ClaimState, StoreUnavailableError

from jackfield_policies.settings import numbers

_log = logging.getLogger(__name__)


class Duplicates:
    """Claims a call before anything else is decided about it, and keeps its answer."""

    def __init__(self, settings: PluginSettings, services: Services) -> None:
        self._store = services.store
        self._seconds = numbers("duplicates", settings, {"remember_seconds": 24 * 3600})["remember_seconds"]

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Every call of every tool."""
        return True

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Run the call, or answer with what became of it before."""
        store = self._store
        key = call.key = key_of(call)
        # A read whose claim is lost in a power cut is only read again.
        tool = call.tool
        durable = not (tool.reads and tool.manifest.idempotent)
        claim = await store.claim(key, call.fingerprint, ttl=self._seconds, durable=durable)
        if claim.state is not ClaimState.RUN:
            return await self._settle(claim, call, proceed)
        try:
            response = await proceed(call)
        except (asyncio.CancelledError, StoreUnavailableError):
            # A read changed nothing, and a policy that could not ask the store let nothing run.
            await self._give_up(call)
            raise
        except Exception:  # noqa: BLE001 - a policy behind this one is somebody else's code
            _log.exception("call %s: a policy failed", key)
            response = policy_failed(writes=not call.tool.reads)
        if not isinstance(response, ToolResponse):
            _log.error("call %s: a policy returned %s instead of an answer", key, type(response).__name__)
            response = policy_failed(writes=not call.tool.reads)
        try:
            await store.complete(key, call.seal(response), durable=durable)
        except StoreUnavailableError as error:
            # It ran, and the model has to know what came of it; a repetition will be found in doubt.
            _log.error("call %s ran, but its answer could not be kept: %s", key, error)
            call.decide("duplicates", "answer not kept")
        return response

    async def _give_up(self, call: Call) -> None:
        with contextlib.suppress(StoreUnavailableError):
            await self._store.release(call.key)

    async def _settle(self, claim: Claim, call: Call, proceed: Proceed) -> ToolResponse:
        """Answer a call that somebody claimed before."""
        store, key = self._store, call.key
        if claim.state is ClaimState.RUNNING:
            claim = await store.outcome(key, within=call.tool.manifest.timeout_ms / 1000 + 5)
        match claim.state:
            case ClaimState.DONE:
                return _replay(call, claim.result or b"")
            case ClaimState.CONFLICT:
                call.end("duplicates", "conflict")
                return fail(
                    ErrorType.CONFLICT,
                    "This call id was used before with other arguments, and that call stands.",
                    suggestion="Make a new call.",
                )
            case ClaimState.IN_DOUBT:
                return await self._settle_doubt(call, proceed)
            case ClaimState.FREE:
                # Whoever held it gave it up before anything ran.
                return await self.apply(call, proceed)
            case _:
                call.end("duplicates", "still running")
                return fail(ErrorType.TRANSIENT, "The same call is still running.", partial_side_effects=True)

    async def _settle_doubt(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Its process died: run it again if that does no harm, else say that nobody knows."""
        store, key = self._store, call.key
        if not await store.reclaim(key):
            return await self.apply(call, proceed)
        if call.tool.reads or call.tool.manifest.idempotent:
            call.decide("duplicates", "run again after a crash")
            await store.release(key)
            return await self.apply(call, proceed)
        call.end("duplicates", "in doubt")
        response = fail(
            ErrorType.INTERNAL,
            "The host stopped while this call was running; it may or may not have taken effect.",
            partial_side_effects=True,
            suggestion="Find out whether it took effect before trying again, and tell the user.",
        )
        await store.complete(key, call.seal(response))
        return response


def key_of(call: Call) -> str:
    """The provider's id when it is stable, else what was called in which turn."""
    call_id = call.call_id
    if call_id and len(call_id) > 8 and "temp" not in call_id:
        return f"call/{call.session.id}/{call_id}"
    return f"call/{call.session.id}/{call.turn.number}/{call.fingerprint.hex()}"


def _replay(call: Call, wire: bytes) -> ToolResponse:
    """The first answer, byte for byte."""
    call.wire = wire
    call.end("duplicates", "replayed")
    envelope: dict[str, Any] = orjson.loads(wire)
    if envelope["ok"]:
        intents = tuple(
            Intent(each["type"], {name: value for name, value in each.items() if name != "type"})
            for each in envelope["intents"]
        )
        return ToolResponse(envelope["data"], None, intents, envelope["meta"])
    error = envelope["error"]
    failure = Failure(
        ErrorType(error["type"]),
        error["message"],
        error["retryable"],
        error["partialSideEffects"],
        error.get("suggestion"),
        error.get("details"),
        error.get("confirmation_request"),
    )
    return ToolResponse(None, failure, (), envelope["meta"])
