"""The same call twice is run once: after a reconnect, on another host, while it runs, after a crash."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from typing import Any

import orjson
from jackfield import ErrorType, Failure, Intent, ToolResponse, fail
from jackfield.governance import Call, Proceed
from jackfield.offers import PluginSettings, Services
from jackfield.orchestrator import policy_failed
from jackfield.registry.invoke import is_for_others
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.store import Claim, ClaimState, StoreUnavailableError

from jackfield_policies.settings import numbers

_log = logging.getLogger(__name__)

LONGEST_ID = 200
"""In characters; of a longer id, in which a gateway may carry a page of its own, the hash is the name."""

MOST_UNKEPT = 1000
"""How many answers wait in memory for a store that could not take them; the oldest make room."""


class Duplicates:
    """Claims a call before anything else is decided about it, and keeps its answer."""

    def __init__(self, settings: PluginSettings, services: Services) -> None:
        self._store = services.store
        self._seconds = numbers("duplicates", settings, {"remember_seconds": 24 * 3600})["remember_seconds"]
        self._unkept: dict[str, bytes] = {}

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
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a policy behind this one is somebody else's code
            response = await self._answer_for(error, call)
        if not isinstance(response, ToolResponse):
            _log.error("call %s: a policy returned %s instead of an answer", key, type(response).__name__)
            response = policy_failed(writes=not call.tool.reads)
        try:
            if not await store.complete(key, call.seal(response), durable=durable):
                # Taken over by another host while this one hung, which told the model that nobody knows.
                call.decide("duplicates", "answer not kept")
        except StoreUnavailableError as error:
            # It ran, and the model has to know what came of it.
            self._not_kept(call, error)
        except Exception:  # noqa: BLE001 - what cannot be written out, or is more than the store takes
            _log.exception("call %s: its answer cannot be kept", key)
            response = await self._keep_instead(call, _unfit(call))
        return response

    async def _answer_for(self, error: BaseException, call: Call) -> ToolResponse:
        """The answer to a call that broke, or the error again where it is not for the model."""
        gone = is_for_others(error)
        may_run_again = call.tool.reads or call.tool.manifest.idempotent or not call.ran_for
        if may_run_again and (gone or isinstance(error, StoreUnavailableError)):
            # Whatever a store does now, whoever gave up the call is to see that it was given up.
            with contextlib.suppress(Exception):
                await self._store.release(call.key)
            raise error
        if gone:
            # The process ends. What began to write must not be run again as if it had not.
            await self._keep_instead(call, _in_doubt())
            raise error
        _log.error("call %s: a policy failed", call.key, exc_info=error)
        if not call.ran_for:
            # Of those behind this one nobody knows which were asked.
            behind = call.policies[call.policies.index("duplicates") + 1 :]
            call.decisions = dict.fromkeys(behind, "unknown") | call.decisions
        return policy_failed(writes=not call.tool.reads)

    async def _keep_instead(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Keep this answer for whoever asks again, without anything that was said beside another one."""
        call.wire, call.meta = None, {}
        try:
            await self._store.complete(call.key, call.seal(response))
        except Exception as error:  # noqa: BLE001 - a store is somebody else's code, too
            self._not_kept(call, error)
        return response

    def _not_kept(self, call: Call, error: Exception) -> None:
        """Remember here what the store could not take: to it the call is still running."""
        _log.error("call %s: its answer could not be kept: %s", call.key, error)
        decided = call.decisions.get("duplicates")
        call.decide("duplicates", f"{decided}, answer not kept" if decided else "answer not kept")
        self._unkept[call.key] = call.wire or b""
        if len(self._unkept) > MOST_UNKEPT:
            del self._unkept[next(iter(self._unkept))]

    async def _outcome(self, call: Call, running: Claim) -> Claim:
        """What became of a call that the store takes for running."""
        store, key = self._store, call.key
        wire = self._unkept.get(key)
        # Without the store nobody knows more than that it was running.
        with contextlib.suppress(Exception):
            if wire is None:
                return await store.outcome(key, within=call.tool.manifest.timeout_ms / 1000 + 5)
            await store.complete(key, wire)
            self._unkept.pop(key, None)
        return running if wire is None else Claim(ClaimState.DONE, wire)

    async def _settle(self, claim: Claim, call: Call, proceed: Proceed) -> ToolResponse:
        """Answer a call that somebody claimed before."""
        if claim.state is ClaimState.RUNNING:
            claim = await self._outcome(call, claim)
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
        if call.tool.reads or call.tool.manifest.idempotent:
            if await store.reclaim(key):
                call.decide("duplicates", "run again after a crash")
                await store.release(key)
            return await self.apply(call, proceed)
        try:
            if not await store.reclaim(key):
                return await self.apply(call, proceed)
        except StoreUnavailableError as error:
            _log.error("call %s is in doubt, and stays so: %s", key, error)
            call.end("duplicates", "in doubt")
            return _in_doubt()
        call.end("duplicates", "in doubt")
        return await self._keep_instead(call, _in_doubt())


def _in_doubt() -> ToolResponse:
    return fail(
        ErrorType.INTERNAL,
        "The host stopped while this call was running; it may or may not have taken effect.",
        partial_side_effects=True,
        suggestion="Find out whether it took effect before trying again, and tell the user.",
    )


def _unfit(call: Call) -> ToolResponse:
    return fail(
        ErrorType.INTERNAL,
        "The tool ran, and its answer is too long to be kept or cannot be written as JSON.",
        partial_side_effects=not call.tool.reads,
        suggestion="Ask it for less.",
    )


def key_of(call: Call) -> str:
    """The provider's id when it is stable, else what was called in which turn."""
    call_id = call.call_id
    # A call of a tool by a tool is named by the host, after the tool, whatever that is called.
    if call_id and 8 < len(call_id) <= LONGEST_ID and ("temp" not in call_id or call.parent):
        return f"call/{call.session.id}/{call_id}"
    if call_id and len(call_id) > LONGEST_ID:
        digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
        return f"call/{call.session.id}/sha256-{digest}"
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
