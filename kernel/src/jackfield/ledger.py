"""The call ledger: a call runs once, and everything said about a call is read from its claim.

**The claim of the run is the source of truth.** Approving, declining, repeating by key, `/tasks`, resuming a
session, events, the audit and the command line all answer from it:

| claim | what is said |
|---|---|
| none | never run |
| held by a live process | running |
| with a result | done, failed, declined or expired, as the recorded envelope says |
| held by a dead process | in doubt, unless the work behind it can be repeated without harm |

A call that needs approval has two claims. The first one, under the call's own key, ends with the answer
"waiting". The second one is the claim of the run (`PendingConfirmation.run_key`); whoever asks about the call
is answered from that one. So nobody says "expired" or "declined" without having recorded it there first.

A call in doubt stays in doubt until its own process turns out to live and records the result, or until a
person settles it: the host cannot find out whether an effect took place.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Awaitable
from typing import Any, NamedTuple

import orjson

from jackfield.confirmation import APPROVED, Confirmations, PendingConfirmation, unrun_meta, waiting
from jackfield.contract.tool import ErrorType, ToolResponse, fail, ok
from jackfield.governance import DUPLICATES, Call, Proceed, policy_failed
from jackfield.invocation import is_external_cancellation
from jackfield.outcomes import (
    CallState,
    expired,
    in_doubt,
    never_ran,
    response_of,
    state_of,
    still_running,
    unknown,
)
from jackfield.store import Claim, ClaimState, Doubt, Store, StoreUnavailableError

_log = logging.getLogger(__name__)

REMEMBER_SECONDS = 24 * 3600.0
"""How long the outcome of a call is remembered, unless the deployment says otherwise."""

LONGEST_ID = 200
"""In characters; a longer id, in which a gateway may carry a page of its own, is hashed."""

NOTED_CHARACTERS = 4000
"""How much of a call's arguments a person is shown who has to settle it."""

MOST_UNRECORDED = 1000
"""How many answers wait in memory for a store that could not take them; the oldest make room."""

RECORD_AGAIN_SECONDS = 1.0
"""How long to wait before an answer that the store could not take is offered to it again."""


class CallStatus(NamedTuple):
    """The state of a call, and its envelope once it has one."""

    state: CallState
    wire: bytes | None = None
    pending: PendingConfirmation | None = None
    """What the user was asked, where the call needed approval."""


class DoubtfulCall(NamedTuple):
    """A call in doubt, with what a person needs to know to settle it."""

    key: str
    tool_id: str
    session_id: str
    user: str | None
    call_id: str | None
    arguments: str
    claimed_at: float


def stable_key(session_id: str, call_id: str) -> str:
    """The key of a call whose id is stable."""
    if len(call_id) > LONGEST_ID:
        call_id = f"sha256-{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return f"call/{session_id}/{call_id}"


def is_stable(call_id: str | None) -> bool:
    """Whether a provider's id names a call for good; short and temporary ones come again for other calls."""
    return bool(call_id) and len(call_id or "") > 8 and "temp" not in (call_id or "")


def idempotency_key(call: Call) -> str:
    """The provider's id when it is stable, else what was called in which turn."""
    call_id = call.call_id
    # The host itself names a tool's call of a tool, after the tool, whatever that is called.
    if call_id and (is_stable(call_id) or call.parent or len(call_id) > LONGEST_ID):
        return stable_key(call.session.id, call_id)
    return f"call/{call.session.id}/{call.turn.number}/{call.fingerprint.hex()}"


class CallLedger:
    """Runs calls once and tells what became of them."""

    def __init__(self, store: Store, seconds: float = REMEMBER_SECONDS) -> None:
        """`seconds` is how long an outcome is remembered."""
        self._store = store
        self._seconds = seconds
        self._confirmations = Confirmations(store)
        self._unrecorded: dict[str, bytes] = {}
        self._recording: asyncio.Task[None] | None = None

    async def run(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Claim `call.key` and run the call, or answer with what became of it before."""
        # A read whose claim is lost in a power cut is only read again.
        durable = not (call.tool.reads and call.tool.manifest.idempotent)
        claim = await self._claim(call, durable=durable)
        while claim.state is not ClaimState.RUN:
            try:
                answer = await self._answer(claim, call)
                if isinstance(answer, ToolResponse):
                    return answer
                claim = answer or await self._claim(call, durable=durable)
            except StoreUnavailableError as error:
                # Whoever claimed it may have run it, so nobody may say now that it was not run.
                _log.error("call %s: what became of it is not known: %s", call.key, error)
                return _unsettled(call, "unknown", unknown())
        if not may_repeat(call):
            call.held = self._store.holds
        try:
            response = await proceed(call)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a policy behind this one is somebody else's code
            response = await self._answer_for(error, call)
        if not isinstance(response, ToolResponse):
            _log.error("call %s: a policy returned %s, not an answer", call.key, type(response).__name__)
            response = policy_failed(writes=not call.tool.reads)
        return await self._record(call, response, durable=durable)

    def _claim(self, call: Call, *, durable: bool) -> Awaitable[Claim]:
        if call.confirmed:
            return self._claim_approved(call, durable=durable)
        if may_repeat(call) or never_runs_unasked(call):
            # Nobody ever has to settle it, so it needs no note.
            return self._store.claim(call.key, call.fingerprint, ttl=self._seconds, durable=durable)
        return self._store.claim(call.key, call.fingerprint, ttl=self._seconds, note=self._note(call))

    async def _claim_approved(self, call: Call, *, durable: bool) -> Claim:
        ttl = self._outlasting(await self._confirmations.of_run(call.key))
        note = b"" if may_repeat(call) else self._note(call)
        return await self._store.claim(call.key, call.fingerprint, ttl=ttl, durable=durable, note=note)

    def _outlasting(self, pending: PendingConfirmation | None) -> float:
        """How long a claim of a call that needed approval is remembered from now on.

        Longer than the question: if it were forgotten first, a call that ran would seem to have expired.
        """
        return max(self._seconds, pending.known_until - self._store.now()) if pending else self._seconds

    async def _ttl(self, key: str, wire: bytes) -> float:
        """How long a recorded envelope is remembered from now on."""
        if key.startswith(APPROVED):
            return self._outlasting(await self._confirmations.of_run(key))
        if _is_waiting(wire):
            pending = await self._confirmations.of_key(_session_of(key), key)
            ttl = self._outlasting(pending)
            if pending and self._store.now() + ttl > pending.known_until:
                # Without the question nobody would find the claim of the run.
                await self._confirmations.keep(pending, ttl)
            return ttl
        return self._seconds

    async def status(self, key: str, *, always_asks: bool = False) -> CallStatus:
        """What became of the call with this key; `always_asks` says that its tool always needs approval."""
        claim = await self._store.outcome(key, within=0)
        if claim.state is ClaimState.DONE:
            state = state_of(claim.result or b"")
            if state is not CallState.WAITING:
                return CallStatus(state, claim.result)
        if claim.state in (ClaimState.DONE, ClaimState.IN_DOUBT):
            pending = await self._confirmations.of_key(_session_of(key), key)
            if pending is not None:
                return await self.status_of(pending)
        if claim.state is ClaimState.IN_DOUBT and always_asks:
            # Its process died before it had asked, and unasked it does not run.
            return CallStatus(CallState.NEVER_RUN)
        return CallStatus(_STATES.get(claim.state, CallState.RUNNING))

    async def status_of(self, pending: PendingConfirmation) -> CallStatus:
        """What became of a call that needed approval, from the claim of its run."""
        claim = await self._store.outcome(pending.run_key, within=0)
        if claim.state is ClaimState.FREE:
            # Nobody may say that it expired before that is recorded: an approval could still overtake it.
            if pending.expires_at > self._store.now():
                return CallStatus(CallState.WAITING, None, pending)
            await self.settle_unrun(pending, expired())
            claim = await self._store.outcome(pending.run_key, within=0)
        if claim.state is ClaimState.DONE:
            return CallStatus(state_of(claim.result or b""), claim.result, pending)
        return CallStatus(_STATES.get(claim.state, CallState.RUNNING), None, pending)

    async def settle_unrun(self, pending: PendingConfirmation, response: ToolResponse) -> bool:
        """Record that a waiting call is not run; false when something else was decided before."""
        claim = await self._store.claim(
            pending.run_key,
            pending.fingerprint,
            ttl=self._outlasting(pending),
            result=pending.unrun(response),
        )
        return claim.state is ClaimState.RUN

    # What a person can do about a call in doubt.

    async def in_doubt(self) -> list[DoubtfulCall]:
        """Every call in doubt."""
        found = [each for prefix in (APPROVED, "call/") for each in await self._store.in_doubt(prefix)]
        return [_doubtful(each) for each in found]

    async def settle(self, key: str, *, ran: bool, by: str, data: Any = None) -> bytes | None:
        """Record what a person found out about a call in doubt; its envelope, or nothing if it is not.

        Of any number of people, one succeeds.
        """
        store = self._store
        note = next((each.note for each in await store.in_doubt(key) if each.key == key), None)
        if note is None:
            return None
        settled = {"ran": ran, "at": store.now(), "by": by}
        response = ok(data) if ran else never_ran()
        response = response.with_meta(**orjson.loads(note)["meta"], settled=settled)
        # Written out and timed before the claim is taken over: what fails here must leave it in doubt.
        wire = orjson.dumps(response.to_wire())
        ttl = await self._ttl(key, wire)
        if not await store.reclaim(key):
            return None
        try:
            return wire if await store.complete(key, wire, ttl=ttl) else None
        except BaseException:
            # It stays in doubt, for the next one who tries.
            with contextlib.suppress(Exception):
                await store.abandon(key)
            raise

    # The steps of a run.

    async def _record(self, call: Call, response: ToolResponse, *, durable: bool) -> ToolResponse:
        """Record the answer of a call that ran here; what its caller is told."""
        try:
            wire = call.seal(response)
            # A call that writes may have hung for longer than its claim lasts; its answer counts from now.
            ttl = None if may_repeat(call) and response.ok else await self._ttl(call.key, wire)
            if await self._store.complete(call.key, wire, durable=durable, ttl=ttl):
                return (
                    await self._decided_meanwhile(call, wire) or response if _is_waiting(wire) else response
                )
        except StoreUnavailableError as error:
            # It ran, and the model has to know what came of it.
            self._record_later(call, error)
            return response
        except Exception:  # noqa: BLE001 - what cannot be written out, or is more than the store takes
            _log.exception("call %s: its answer cannot be recorded", call.key)
            return await self._record_instead(call, _unfit(call))
        return await self._lost(call, response)

    async def _decided_meanwhile(self, call: Call, wire: bytes) -> ToolResponse | None:
        """The outcome of a call that was approved or declined while this process hung after asking."""
        with contextlib.suppress(StoreUnavailableError):
            pending = await self._confirmations.of_key(call.session.id, call.key)
            if pending is None:
                return None
            claim = await self._store.outcome(pending.run_key, within=0)
            if claim.state is not ClaimState.FREE:
                return await self._follow(call, wire)
        return None

    async def _lost(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Answer for a call whose claim was taken over while this process hung: the record is the answer."""
        claim = None
        with contextlib.suppress(StoreUnavailableError):
            claim = await self._store.outcome(call.key, within=_patience(call))
        if claim is None or claim.state is not ClaimState.DONE:
            _log.error("call %s: its claim was lost, and its answer is not recorded", call.key)
            call.decide(DUPLICATES, "answer not recorded")
            return response
        if call.invocations and state_of(claim.result or b"") is CallState.NEVER_RUN:
            # Whoever settled it could not know. What this process did is what happened.
            _log.error("call %s ran, although somebody settled it as never run", call.key)
            call.decide(DUPLICATES, "ran, but settled as never run")
            return response
        return await self._answer_recorded(call, claim.result or b"")

    async def _answer_for(self, error: BaseException, call: Call) -> ToolResponse:
        """The answer to a call that broke, or the error again where it is not for the model."""
        gone = is_external_cancellation(error)
        may_run_again = may_repeat(call) or not call.invocations
        if may_run_again and (gone or isinstance(error, StoreUnavailableError)):
            # Whatever a store does now, whoever gave up the call has to see that it was given up.
            with contextlib.suppress(Exception):
                await self._store.release(call.key)
            raise error
        if gone:
            # The process ends. What began to write is in doubt from now on.
            with contextlib.suppress(Exception):
                await self._store.abandon(call.key)
            raise error
        _log.error("call %s: a policy failed", call.key, exc_info=error)
        if not call.invocations:
            # Nobody knows which of the policies behind this one were asked.
            place = call.policies.index(DUPLICATES) if DUPLICATES in call.policies else -1
            call.decisions = dict.fromkeys(call.policies[place + 1 :], "unknown") | call.decisions
        return policy_failed(writes=not call.tool.reads)

    async def _record_instead(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Record this answer, without anything that was said beside another one."""
        call.wire, call.meta = None, {}
        try:
            await self._store.complete(call.key, call.seal(response), ttl=self._seconds)
        except Exception as error:  # noqa: BLE001 - a store is third-party code, too
            self._record_later(call, error)
        return response

    def _record_later(self, call: Call, error: Exception) -> None:
        """Keep here what the store could not take, and offer it again: to others the call is running."""
        _log.error("call %s: its answer could not be recorded: %s", call.key, error)
        decided = call.decisions.get(DUPLICATES)
        call.decide(DUPLICATES, f"{decided}, answer not recorded" if decided else "answer not recorded")
        self._offer_later(call.key, call.wire or b"")

    def _offer_later(self, key: str, wire: bytes) -> None:
        self._unrecorded[key] = wire
        if len(self._unrecorded) > MOST_UNRECORDED:
            del self._unrecorded[next(iter(self._unrecorded))]
        if self._recording is None or self._recording.done():
            self._recording = asyncio.get_running_loop().create_task(self._keep_recording())

    async def _keep_recording(self) -> None:
        """Offer answers to the store until it has taken them all."""
        while self._unrecorded:
            await asyncio.sleep(RECORD_AGAIN_SECONDS)
            for key, wire in list(self._unrecorded.items()):
                try:
                    await self._store.complete(key, wire, ttl=await self._ttl(key, wire))
                except StoreUnavailableError:
                    break  # It is still away, as was logged the first time.
                except Exception:  # noqa: BLE001 - a store is third-party code
                    _log.exception("call %s: its answer cannot be recorded", key)
                self._unrecorded.pop(key, None)

    async def _answer(self, claim: Claim, call: Call) -> ToolResponse | Claim | None:
        """Answer a call that was claimed before.

        Nothing when it may be claimed again, and a claim when this process has taken it over.
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
                    "This call id was used before with other arguments, and that call stands.",
                    suggestion="Make a new call.",
                )
            case ClaimState.IN_DOUBT:
                return await self._answer_doubt(call)
            case ClaimState.FREE:
                # Whoever held it gave it up before anything ran.
                return None
            case _:
                return _unsettled(call, "still running", still_running())

    async def _outcome(self, call: Call, running: Claim) -> Claim:
        """What became of a call that the store takes for running."""
        wire = self._unrecorded.get(call.key)
        if wire is not None:
            return Claim(ClaimState.DONE, wire)
        # Without the store nobody knows more than that it was running.
        with contextlib.suppress(Exception):
            return await self._store.outcome(call.key, within=_patience(call))
        return running

    async def _answer_doubt(self, call: Call) -> ToolResponse | Claim | None:
        """Answer a call whose process died, or take it over where running it again does no harm."""
        store, key = self._store, call.key
        pending = None if call.confirmed else await self._confirmations.of_key(call.session.id, key)
        if pending is not None:
            # It died while it asked; the user may have decided since.
            if not await store.reclaim(key):
                return None
            wire = pending.unrun(waiting(pending))
            try:
                await store.complete(key, wire, ttl=self._outlasting(pending))
            except StoreUnavailableError:
                # This process holds the claim now, and to others it would seem to run for ever.
                self._offer_later(key, wire)
                raise
            return await self._follow(call, wire)
        if may_repeat(call) or never_runs_unasked(call):
            if not await store.reclaim(key):
                return None
            call.decide(DUPLICATES, "run again after a crash")
            return Claim(ClaimState.RUN)
        return _unsettled(call, "in doubt", in_doubt())

    async def _answer_recorded(self, call: Call, wire: bytes) -> ToolResponse:
        """The recorded answer; where that was "waiting", what became of the call since."""
        if _is_waiting(wire):
            return await self._follow(call, wire)
        return _replay(call, wire)

    async def _follow(self, call: Call, first: bytes) -> ToolResponse:
        """Answer the repetition of a call that needed approval, from the claim of its run.

        `first` is the answer the call got when the user was asked.
        """
        pending = await self._confirmations.of_key(call.session.id, call.key)
        if pending is None:
            return _replay(call, first)
        status = await self.status_of(pending)
        if status.state is CallState.RUNNING:
            await self._store.outcome(pending.run_key, within=_patience(call))
            status = await self.status_of(pending)
        match status.state:
            case CallState.WAITING:
                return _replay(call, first)
            case CallState.RUNNING:
                return _unsettled(call, "still running", still_running())
            case CallState.IN_DOUBT:
                return _unsettled(call, "in doubt", in_doubt())
            case _:
                return _replay(call, status.wire or b"")

    def _note(self, call: Call) -> bytes:
        """What a person is told who has to settle the call."""
        tool, session = call.tool, call.session
        arguments = orjson.dumps(call.args).decode("utf-8", "replace")
        return orjson.dumps(
            {
                "callId": call.client_call_id,
                "session": session.id,
                "user": session.user,
                "arguments": arguments[:NOTED_CHARACTERS],
                "at": self._store.now(),
                "meta": unrun_meta(tool),
            }
        )


def _session_of(key: str) -> str:
    """The session that a call's key belongs to."""
    return key.split("/", 2)[1] if key.count("/") > 1 else ""


def _is_waiting(wire: bytes) -> bool:
    # Most envelopes need not be read to be told from one of a waiting call.
    return b'"state":"waiting"' in wire and state_of(wire) is CallState.WAITING


def may_repeat(call: Call) -> bool:
    """Whether running a call twice does no harm."""
    return call.tool.reads or call.tool.manifest.idempotent


def never_runs_unasked(call: Call) -> bool:
    """Whether nothing can have run under a call's own claim, because its tool always needs approval."""
    return call.tool.manifest.requires_confirmation is True and not call.confirmed


def _unfit(call: Call) -> ToolResponse:
    return fail(
        ErrorType.INTERNAL,
        "The tool ran, and its answer is too long to be kept or cannot be written as JSON.",
        partial_side_effects=not call.tool.reads,
        suggestion="Ask it for less.",
    )


_STATES = {
    ClaimState.FREE: CallState.NEVER_RUN,
    ClaimState.IN_DOUBT: CallState.IN_DOUBT,
    ClaimState.RUNNING: CallState.RUNNING,
}


def _patience(call: Call) -> float:
    """How long to wait for another delivery of the same call."""
    return call.tool.manifest.timeout_ms / 1000 + 5


def _unsettled(call: Call, decision: str, response: ToolResponse) -> ToolResponse:
    """An answer that is true now and is not recorded, because the outcome may still come."""
    call.wire, call.replayed = None, True
    call.end(DUPLICATES, decision)
    return response


def _doubtful(doubt: Doubt) -> DoubtfulCall:
    note = orjson.loads(doubt.note)
    return DoubtfulCall(
        doubt.key,
        note["meta"]["toolId"],
        note["session"],
        note["user"],
        note["callId"],
        note["arguments"],
        note["at"],
    )


def _replay(call: Call, wire: bytes) -> ToolResponse:
    """The recorded answer, byte for byte."""
    call.wire, call.replayed = wire, True
    call.end(DUPLICATES, "replayed")
    return response_of(wire)
