"""The call ledger: runs each call once and derives its state from its claim.

**The claim of the run is the source of truth.** Approving, declining, repeating by key, `/tasks`, resuming a
session, events, the audit and the command line all derive the state of a call from it:

| claim | state |
|---|---|
| none | never run |
| held by a live process | running |
| with a result | done, failed, declined or expired, as the recorded envelope says |
| held by a dead process | in doubt, unless the call can be repeated without harm |

A call that needs confirmation has two claims. The first one, under the call's own key, ends with the result
"waiting". The second one is the claim of the run (`PendingConfirmation.run_key`), and the state is read from
it. So a call is reported as expired or declined only after the second claim records that outcome.

A call in doubt stays in doubt until its own process turns out to be alive and records the result, or until
an operator settles it: the host cannot find out whether the call took effect. A capability may know that the
call had no effect (`jackfield.call_takeover`); the next host then takes the call over.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from jackfield.call_states import (
    CallState,
    expired,
    in_doubt,
    never_ran,
    response_of,
    state_of,
    still_running,
    unknown,
)
from jackfield.call_takeover import may_run_again
from jackfield.confirmation import (
    APPROVED,
    Confirmations,
    PendingConfirmation,
    confirmation_pending,
    not_run_meta,
)
from jackfield.contract.context import Mode
from jackfield.contract.manifest import Category
from jackfield.contract.tool import ErrorType, ToolResponse, fail, ok
from jackfield.governance import DUPLICATES, Call, Proceed, policy_failed
from jackfield.invocation import is_external_cancellation
from jackfield.store import Claim, ClaimState, DoubtfulClaim, Store, StoreUnavailableError

_log = logging.getLogger(__name__)

OUTCOME_SECONDS = 24 * 3600.0
"""How long the outcome of a call is kept by default."""

MAX_ID_LENGTH = 200
"""Maximum length of an id in a key, in characters; longer ids, as some gateways create them, are hashed."""

MAX_REUSED_LENGTH = 8
"""Ids of at most this many characters do not identify a call, because providers reuse short ids."""

MAX_NOTE_CHARACTERS = 8000
"""Maximum length, in characters, of the arguments in the note with which a call is settled or taken over."""

RUN_AGAIN = "run again after a crash"
"""The recorded decision on a call that this process took over from a dead one."""

MAX_UNRECORDED = 1000
"""Maximum number of envelopes in memory while the store is unavailable; the oldest are dropped."""

RECORD_RETRY_SECONDS = 1.0
"""The pause before each attempt to write the envelopes that the store has not accepted."""

_RUN = ClaimState.RUN

_STATES = {
    ClaimState.FREE: CallState.NEVER_RUN,
    ClaimState.IN_DOUBT: CallState.IN_DOUBT,
    ClaimState.RUNNING: CallState.RUNNING,
}


class CallStatus(NamedTuple):
    """The state of a call, and its envelope once it has one."""

    state: CallState
    wire: bytes | None = None
    pending: PendingConfirmation | None = None
    """The confirmation request, if the call needed one."""


class DoubtfulCall(NamedTuple):
    """A call in doubt, with the information that an operator needs to settle it."""

    key: str
    tool_id: str
    session_id: str
    user: str | None
    call_id: str | None
    arguments: str
    claimed_at: float
    tool_version: str = ""
    registry_version: str = ""
    """The registry from which the tool ran."""
    category: Category | None = None
    """The tool's category; earlier versions of Jackfield recorded no category, mode or turn."""
    mode: Mode = "text"
    turn: int = 1


class CallLedger:
    """Runs each call once and reports the state of calls."""

    def __init__(
        self,
        store: Store,
        seconds: float = OUTCOME_SECONDS,
        *,
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        """`seconds` is how long an outcome is kept; `capabilities` may let a call in doubt run again."""
        self._store = store
        self._seconds = seconds
        self._capabilities = capabilities or {}
        self._confirmations = Confirmations(store)
        self._unrecorded: dict[str, bytes] = {}
        self._flush_task: asyncio.Task[None] | None = None

    async def run(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Claim `call.key`, run the call and record its response, or answer it from an earlier claim."""
        tool, store, key = call.tool, self._store, call.key
        if tool.repeatable and not call.confirmed:
            ttl, note = self._seconds, b""
        else:
            ttl, note = await self._claim_terms(call)
        durable = not tool.volatile
        claim = await store.claim(key, call.fingerprint, ttl=ttl, durable=durable, note=note)
        if claim.state is not _RUN:
            answer = await self._answer_earlier(claim, call, ttl, note)
            if answer is not None:
                return answer
        if not tool.repeatable:
            call.check_claim = store.holds
        try:
            response = await proceed(call)
        except BaseException as error:  # noqa: BLE001 - policies are third-party code
            response = await self._answer_error(error, call)
        if not isinstance(response, ToolResponse):
            _log.error("call %s: a policy returned %s, not a response", key, type(response).__name__)
            response = policy_failed(writes=not tool.reads)
        try:
            wire = call.seal(response)
            if tool.repeatable and response.failure is None:
                recorded = response if await store.complete(key, wire, durable=durable) else None
            else:
                recorded = await self._record(call, response, wire)
        except Exception as error:  # noqa: BLE001 - a store is third-party code
            return await self._answer_unrecorded(call, response, error)
        return recorded or await self._answer_lost_claim(call, response)

    async def _claim_terms(self, call: Call) -> tuple[float, bytes]:
        """Return how long to keep the claim of a call, and the note for the operator who may settle it."""
        # The claim is kept at least as long as the confirmation request.
        ttl = (
            self._claim_ttl(await self._confirmations.for_run(call.key)) if call.confirmed else self._seconds
        )
        # A call that may run twice, or runs nothing under this claim, never needs to be settled.
        settled = call.tool.repeatable or runs_only_approved(call)
        return ttl, b"" if settled else self._note(call)

    async def _answer_earlier(self, claim: Claim, call: Call, ttl: float, note: bytes) -> ToolResponse | None:
        """Answer a call that was claimed earlier; None if this process now holds the claim."""
        durable = not call.tool.volatile
        while claim.state is not _RUN:
            try:
                answer = await self._answer_claimed(claim, call)
                if isinstance(answer, ToolResponse):
                    return answer
                claim = answer or await self._store.claim(
                    call.key, call.fingerprint, ttl=ttl, durable=durable, note=note
                )
            except StoreUnavailableError as error:
                # The holder of the claim may have run the call, so it must not be reported as not run.
                _log.error("call %s: its state is unknown: %s", call.key, error)
                return _unrecorded_answer(call, "unknown", unknown())
        return None

    def _claim_ttl(self, pending: PendingConfirmation | None) -> float:
        """Return how long, from now on, to keep a claim of a call that needed confirmation.

        The claim must last as long as the request: otherwise a call that ran would appear to have expired.
        """
        return max(self._seconds, pending.kept_until - self._store.now()) if pending else self._seconds

    async def _result_ttl(self, key: str, wire: bytes) -> float:
        """Return how long, from now on, to keep a recorded envelope."""
        if key.startswith(APPROVED):
            return self._claim_ttl(await self._confirmations.for_run(key))
        if _is_waiting(wire):
            pending = await self._confirmations.for_call(_session_of(key), key)
            ttl = self._claim_ttl(pending)
            if pending and self._store.now() + ttl > pending.kept_until:
                # The claim of the run can only be found through the confirmation request.
                await self._confirmations.save(pending, ttl)
            return ttl
        return self._seconds

    async def status(self, key: str, *, always_confirms: bool = False) -> CallStatus:
        """Return the state of a call; set `always_confirms` if its tool always needs confirmation."""
        claim = await self._store.outcome(key, within=0)
        if claim.state is ClaimState.DONE:
            state = state_of(claim.result or b"")
            if state is not CallState.WAITING:
                return CallStatus(state, claim.result)
        if claim.state in (ClaimState.DONE, ClaimState.IN_DOUBT):
            pending = await self._confirmations.for_call(_session_of(key), key)
            if pending is not None:
                return await self.status_of(pending)
        if claim.state is ClaimState.IN_DOUBT and always_confirms:
            # The process died before it requested confirmation, and the call does not run without it.
            return CallStatus(CallState.NEVER_RUN)
        return CallStatus(_STATES.get(claim.state, CallState.RUNNING))

    async def status_of(self, pending: PendingConfirmation) -> CallStatus:
        """Return the state of a call that needed confirmation, from the claim of its run."""
        claim = await self._store.outcome(pending.run_key, within=0)
        if claim.state is ClaimState.FREE:
            # Record the expiry before reporting it: an approval could still come first.
            if pending.expires_at > self._store.now():
                return CallStatus(CallState.WAITING, None, pending)
            await self.record_not_run(pending, expired())
            claim = await self._store.outcome(pending.run_key, within=0)
        if claim.state is ClaimState.DONE:
            return CallStatus(state_of(claim.result or b""), claim.result, pending)
        return CallStatus(_STATES.get(claim.state, CallState.RUNNING), None, pending)

    async def record_not_run(self, pending: PendingConfirmation, response: ToolResponse) -> bool:
        """Record that a pending call is not run; return False if a decision was already recorded."""
        claim = await self._store.claim(
            pending.run_key,
            pending.fingerprint,
            ttl=self._claim_ttl(pending),
            result=pending.seal_not_run(response),
        )
        return claim.state is ClaimState.RUN

    # Calls in doubt, which an operator settles.

    async def in_doubt(self) -> list[DoubtfulCall]:
        """Return all calls in doubt."""
        found = [each for prefix in (APPROVED, "call/") for each in await self._store.in_doubt(prefix)]
        return [_doubtful_call(each) for each in found]

    async def settle(
        self, key: str, *, ran: bool, by: str, data: Any = None, response: ToolResponse | None = None
    ) -> bytes | None:
        """Record an operator's finding about a call in doubt, and return the call's envelope.

        Returns None if the call is not in doubt. If several operators settle it at once, only one succeeds. A
        host that knows the outcome itself passes the `response`, which becomes the envelope.
        """
        store = self._store
        note = next((each.note for each in await store.in_doubt(key) if each.key == key), None)
        if note is None:
            return None
        settled = {"ran": ran, "at": store.now(), "by": by}
        response = response or (ok(data) if ran else never_ran())
        response = response.with_meta(**orjson.loads(note)["meta"], settled=settled)
        # Encode before taking over the claim: if encoding fails, the call must stay in doubt.
        wire = orjson.dumps(response.to_wire())
        ttl = await self._result_ttl(key, wire)
        if not await store.reclaim(key):
            return None
        try:
            return wire if await store.complete(key, wire, ttl=ttl) else None
        except BaseException:
            # Leave the call in doubt, so that it can be settled later.
            with contextlib.suppress(Exception):
                await store.abandon(key)
            raise

    # The steps of a run.

    async def _record(self, call: Call, response: ToolResponse, wire: bytes) -> ToolResponse | None:
        """Record a write or a failure, and return the response for the caller; None if the claim was lost."""
        # A call that writes may have been blocked for longer than its claim lasts, so the time to live of its
        # result starts now.
        ttl = await self._result_ttl(call.key, wire)
        if not await self._store.complete(call.key, wire, durable=not call.tool.volatile, ttl=ttl):
            return None
        if response.failure is None or not _is_waiting(wire):
            return response
        return await self._concurrent_decision(call, wire) or response

    async def _answer_unrecorded(self, call: Call, response: ToolResponse, error: Exception) -> ToolResponse:
        """Answer a call that ran here, but whose response could not be recorded."""
        if isinstance(error, StoreUnavailableError):
            # The call ran, and the model has to know its result.
            self._record_later(call, error)
            return response
        # The response cannot be encoded, or is too large for the store.
        _log.error("call %s: its result cannot be recorded", call.key, exc_info=error)
        return await self._record_instead(call, _unrecordable(call))

    async def _concurrent_decision(self, call: Call, wire: bytes) -> ToolResponse | None:
        """Return the outcome if the user decided while this process was blocked after requesting it."""
        with contextlib.suppress(StoreUnavailableError):
            pending = await self._confirmations.for_call(call.session.id, call.key)
            if pending is None:
                return None
            claim = await self._store.outcome(pending.run_key, within=0)
            if claim.state is not ClaimState.FREE:
                return await self._answer_confirmable(call, wire)
        return None

    async def _answer_lost_claim(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Answer, from the record, a call whose claim was taken over while this process was blocked."""
        claim = None
        with contextlib.suppress(StoreUnavailableError):
            claim = await self._store.outcome(call.key, within=_wait_seconds(call))
        if claim is None or claim.state is not ClaimState.DONE:
            _log.error("call %s: its claim was lost, and its result is not recorded", call.key)
            call.decide(DUPLICATES, "result not recorded")
            return response
        if call.invocations and state_of(claim.result or b"") is CallState.NEVER_RUN:
            # The operator who settled the call could not know that it ran here.
            _log.error("call %s ran, although an operator settled it as never run", call.key)
            call.decide(DUPLICATES, "ran, but settled as never run")
            return response
        return await self._answer_recorded(call, claim.result or b"")

    async def _answer_error(self, error: BaseException, call: Call) -> ToolResponse:
        """Return the response to a call that failed, or raise the error again if the caller must see it."""
        if isinstance(error, KeyboardInterrupt | GeneratorExit):
            raise error
        cancelled = is_external_cancellation(error)
        may_run_again = call.tool.repeatable or not call.invocations
        if may_run_again and (cancelled or isinstance(error, StoreUnavailableError)):
            # Errors of the store must not hide the cancellation from the caller.
            with contextlib.suppress(Exception):
                await self._store.release(call.key)
            raise error
        if cancelled:
            # The process is ending, and a write that started is in doubt from now on.
            with contextlib.suppress(Exception):
                await self._store.abandon(call.key)
            raise error
        _log.error("call %s: a policy failed", call.key, exc_info=error)
        if not call.invocations:
            # Which of the later policies were reached is unknown.
            place = call.policies.index(DUPLICATES) if DUPLICATES in call.policies else -1
            call.decisions = dict.fromkeys(call.policies[place + 1 :], "unknown") | call.decisions
        return policy_failed(writes=not call.tool.reads)

    async def _record_instead(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Record another response, without the `meta` of the one that could not be recorded."""
        call.wire, call.meta = None, {}
        try:
            await self._store.complete(call.key, call.seal(response), ttl=self._seconds)
        except Exception as error:  # noqa: BLE001 - a store is third-party code
            self._record_later(call, error)
        return response

    def _record_later(self, call: Call, error: Exception) -> None:
        """Queue an envelope that the store rejected; until it is written, the call appears to be running."""
        _log.error("call %s: its result could not be recorded: %s", call.key, error)
        decision = call.decisions.get(DUPLICATES)
        call.decide(DUPLICATES, f"{decision}, result not recorded" if decision else "result not recorded")
        self._enqueue(call.key, call.wire or b"")

    def _enqueue(self, key: str, wire: bytes) -> None:
        self._unrecorded[key] = wire
        if len(self._unrecorded) > MAX_UNRECORDED:
            del self._unrecorded[next(iter(self._unrecorded))]
        if self._flush_task is None or self._flush_task.done():
            self._flush_task = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        """Write the queued envelopes until the store has accepted all of them."""
        while self._unrecorded:
            await asyncio.sleep(RECORD_RETRY_SECONDS)
            for key, wire in list(self._unrecorded.items()):
                try:
                    await self._store.complete(key, wire, ttl=await self._result_ttl(key, wire))
                except StoreUnavailableError:
                    break  # Still unavailable; the first failure was logged.
                except Exception:  # noqa: BLE001 - a store is third-party code
                    _log.exception("call %s: its result cannot be recorded", key)
                self._unrecorded.pop(key, None)

    async def _answer_claimed(self, claim: Claim, call: Call) -> ToolResponse | Claim | None:
        """Answer a call that was claimed earlier.

        Returns None if the call may be claimed again, and a claim if this process has taken the call over.
        """
        if claim.state is ClaimState.RUNNING:
            claim = await self._outcome(call, claim)
        match claim.state:
            case ClaimState.DONE:
                return await self._answer_recorded(call, claim.result or b"")
            case ClaimState.CONFLICT:
                call.end(DUPLICATES, "conflict")
                return fail(
                    ErrorType.CONFLICT,
                    "This call id was already used with different arguments; the earlier call is unaffected.",
                    suggestion="Make a new call with a different id.",
                )
            case ClaimState.IN_DOUBT:
                return await self._answer_in_doubt(call)
            case ClaimState.FREE:
                # The holder released the claim before anything ran.
                return None
            case _:
                return _unrecorded_answer(call, "still running", still_running())

    async def _outcome(self, call: Call, running: Claim) -> Claim:
        """Wait for the outcome of a call that is running according to the store."""
        wire = self._unrecorded.get(call.key)
        if wire is not None:
            return Claim(ClaimState.DONE, wire)
        # If the store fails, all that is known is that the call was running.
        with contextlib.suppress(Exception):
            return await self._store.outcome(call.key, within=_wait_seconds(call))
        return running

    async def _answer_in_doubt(self, call: Call) -> ToolResponse | Claim | None:
        """Answer a call whose process died, or take it over if running it again does no harm."""
        store, key = self._store, call.key
        pending = None if call.confirmed else await self._confirmations.for_call(call.session.id, key)
        if pending is not None:
            # The process died while it requested confirmation; the user may have decided since.
            if not await store.reclaim(key):
                return None
            wire = pending.seal_not_run(confirmation_pending(pending))
            try:
                await store.complete(key, wire, ttl=self._claim_ttl(pending))
            except StoreUnavailableError:
                # This process holds the claim now; without a result, the call would appear to run forever.
                self._enqueue(key, wire)
                raise
            return await self._answer_confirmable(call, wire)
        if (
            call.tool.repeatable
            or runs_only_approved(call)
            or await may_run_again(self._capabilities, call.tool, call.session.id, call.args)
        ):
            if not await store.reclaim(key):
                return None
            call.decide(DUPLICATES, RUN_AGAIN)
            return Claim(ClaimState.RUN)
        return _unrecorded_answer(call, "in doubt", in_doubt())

    async def _answer_recorded(self, call: Call, wire: bytes) -> ToolResponse:
        """Return the recorded response; if it is "waiting", the current state of the call."""
        if _is_waiting(wire):
            return await self._answer_confirmable(call, wire)
        return _replay(call, wire)

    async def _answer_confirmable(self, call: Call, first: bytes) -> ToolResponse:
        """Answer a repeated call that needed confirmation, from the claim of its run.

        `first` is the envelope that the call got when confirmation was requested.
        """
        pending = await self._confirmations.for_call(call.session.id, call.key)
        if pending is None:
            return _replay(call, first)
        status = await self.status_of(pending)
        if status.state is CallState.RUNNING:
            await self._store.outcome(pending.run_key, within=_wait_seconds(call))
            status = await self.status_of(pending)
        match status.state:
            case CallState.WAITING:
                return _replay(call, first)
            case CallState.RUNNING:
                return _unrecorded_answer(call, "still running", still_running())
            case CallState.IN_DOUBT:
                return _unrecorded_answer(call, "in doubt", in_doubt())
            case _:
                return _replay(call, status.wire or b"")

    def _note(self, call: Call) -> bytes:
        """Return the note for the operator who may have to settle the call."""
        tool, session = call.tool, call.session
        arguments = orjson.dumps(call.args).decode("utf-8", "replace")
        return orjson.dumps(
            {
                "callId": call.client_call_id,
                "session": session.id,
                "user": session.user,
                "arguments": arguments[:MAX_NOTE_CHARACTERS],
                "at": self._store.now(),
                "meta": not_run_meta(tool),
                "category": tool.category,
                "mode": session.mode,
                "turn": call.turn.number,
            }
        )


def stable_key(session_id: str, call_id: str) -> str:
    """Return the key of a call whose id is stable."""
    if len(call_id) > MAX_ID_LENGTH:
        call_id = f"sha256-{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return f"call/{session_id}/{call_id}"


def is_stable(call_id: str | None) -> bool:
    """Return whether a provider's id identifies one call; short and temporary ids are reused."""
    return call_id is not None and len(call_id) > MAX_REUSED_LENGTH and "temp" not in call_id


IDEMPOTENCY_META = "jackfield/idempotencyKey"
"""The member of an MCP call's `_meta` that identifies the call: the same key returns the same outcome."""


def idempotency_key(call: Call) -> str:
    """Return a call's key, made from the provider's id if it is stable, else from turn and arguments."""
    call_id, session_id = call.call_id, call.session.id
    if call_id:
        length = len(call_id)
        if length > MAX_ID_LENGTH:
            return stable_key(session_id, call_id)
        # The id of a nested call comes from the host, so it is stable even if the tool's name looks
        # temporary. The rest is `is_stable`, without a call on the path of every message.
        if call.parent or (length > MAX_REUSED_LENGTH and "temp" not in call_id):
            return f"call/{session_id}/{call_id}"
    return f"call/{session_id}/{call.turn.number}/{call.fingerprint.hex()}"


def runs_only_approved(call: Call) -> bool:
    """Return whether a call runs only under its approval's claim, because its tool always needs approval."""
    return call.tool.manifest.requires_confirmation is True and not call.confirmed


def _is_waiting(wire: bytes) -> bool:
    """Return whether an envelope says that the call is waiting for the user's decision."""
    # The substring check avoids parsing most envelopes.
    return b'"state":"waiting"' in wire and state_of(wire) is CallState.WAITING


def _session_of(key: str) -> str:
    """Return the session id in a call's key."""
    return key.split("/", 2)[1] if key.count("/") > 1 else ""


def _wait_seconds(call: Call) -> float:
    """Return how long to wait for the outcome of another delivery of the same call."""
    return call.tool.manifest.timeout_ms / 1000 + 5


def _unrecordable(call: Call) -> ToolResponse:
    return fail(
        ErrorType.INTERNAL,
        "The tool ran, but its result is too large to store or cannot be encoded as JSON.",
        partial_side_effects=not call.tool.reads,
        suggestion="Request less data.",
    )


def _unrecorded_answer(call: Call, decision: str, response: ToolResponse) -> ToolResponse:
    """Answer with the current state without recording it, because the outcome may still change."""
    call.wire, call.replayed = None, True
    call.end(DUPLICATES, decision)
    return response


def _replay(call: Call, wire: bytes) -> ToolResponse:
    """Answer with the recorded envelope, byte for byte."""
    call.wire, call.replayed = wire, True
    call.end(DUPLICATES, "replayed")
    return response_of(wire)


def _doubtful_call(claim: DoubtfulClaim) -> DoubtfulCall:
    note = orjson.loads(claim.note)
    return DoubtfulCall(
        claim.key,
        note["meta"]["toolId"],
        note["session"],
        note["user"],
        note["callId"],
        note["arguments"],
        note["at"],
        note["meta"]["toolVersion"],
        note["meta"]["registryVersion"],
        note.get("category"),
        note.get("mode", "text"),
        note.get("turn", 1),
    )
