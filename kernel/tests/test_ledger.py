"""The call ledger: a call runs once, and every statement about it matches its claim."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest
from jackfield import ToolResponse, fail, ledger, ok
from jackfield.call_states import CallState, declined
from jackfield.confirmation import Confirmations, PendingConfirmation, confirmation_pending
from jackfield.contract.tool import ErrorType
from jackfield.governance import Call, Proceed
from jackfield.ledger import CallLedger, CallStatus, stable_key
from jackfield.offers import PolicyOffer, Stage
from jackfield.orchestrator import CallResult
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.store import ClaimState, StoreUnavailableError
from jackfield_testkit.runtime import TestRuntime, make_tool
from shared_store import SharedStore

ID = "call_1234567890"
KEY = stable_key("s", ID)
WRITES: dict[str, Any] = {"sideEffects": "writes", "idempotent": False}
EXPIRY, DAY = 300.0, 24 * 3600.0


class Clock:
    """A clock that a test sets."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class DuplicatesPolicy:
    """Runs calls through the ledger, as the duplicates policy does."""

    def __init__(self, ledger: CallLedger) -> None:
        self._ledger = ledger

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:
        return True

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        if call.key:
            return await proceed(call)
        call.key = ledger.idempotency_key(call)
        return await self._ledger.run(call, proceed)


class ConfirmationPolicy:
    """ConfirmationPolicy for confirmation if the tool needs it, as the confirmation policy does."""

    def __init__(self, confirmations: Confirmations) -> None:
        self._confirmations = confirmations

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:
        return bool(tool.manifest.requires_confirmation)

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        if call.confirmed:
            return await proceed(call)
        return confirmation_pending(await self._confirmations.request(call, seconds=EXPIRY))


class BeforeHandler:
    """Runs right before the handler and does what a test defines."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:
        return True

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        self._host.calls.append(call)
        self._host.reached.set()
        await self._host.passes.wait()
        return await proceed(call)


class Host:
    """One process of a deployment: a shared store, a ledger, tools that count their runs.

    A call stops before the handler until `passes` is set, and inside of it until `ends` is set.
    """

    def __init__(self, clock: Clock, other: Host | None = None, *, remember: float = DAY) -> None:
        self.clock = clock
        self.store: SharedStore = SharedStore(clock, other.store if other else None)
        self.ledger = CallLedger(self.store, remember)
        self.runs: list[str] = other.runs if other else []
        self.calls: list[Call] = []
        self.reached, self.began = asyncio.Event(), asyncio.Event()
        self.passes, self.ends = asyncio.Event(), asyncio.Event()
        self.passes.set()
        self.ends.set()
        self.answer = ok({"sent": True})
        asking = {**WRITES, "requiresConfirmation": True}
        self._bench = TestRuntime(
            make_tool("send", self._handle, **WRITES),
            make_tool("read", self._handle),
            make_tool("ask", self._handle, **asking),
            policies=[
                PolicyOffer("duplicates", Stage.ADMIT, 1, lambda _s, _v: DuplicatesPolicy(self.ledger)),
                PolicyOffer(
                    "confirmation", Stage.ADMIT, 2, lambda _s, v: ConfirmationPolicy(Confirmations(v.store))
                ),
                PolicyOffer("hook", Stage.ADMIT, 3, lambda _s, _v: BeforeHandler(self)),
            ],
            store=self.store,
        )
        self.session = self._bench.session(session_id="s", secret="known to the client")

    async def _handle(self, args: dict[str, Any], ctx: Any) -> ToolResponse:
        self.runs.append("run")
        self.began.set()
        await self.ends.wait()
        return self.answer

    async def call(self, tool: str = "send") -> CallResult:
        return await self._bench.call(self.session, tool, "{}", ID)

    async def decide(self, pending: PendingConfirmation, *, approve: bool = True) -> CallResult:
        return await self._bench.orchestrator.resolve_confirmation(
            self.session, pending, self.ledger, approve=approve
        )

    async def asked(self) -> PendingConfirmation:
        """Make a call that waits for its user."""
        assert state(await self.call("ask")) == "waiting"
        (pending,) = await Confirmations(self.store).for_session("s")
        return pending

    async def hang(self, tool: str = "send") -> asyncio.Task[CallResult]:
        """Begin a call whose handler does not end, and make the others consider this process dead."""
        self.ends.clear()
        calling = asyncio.create_task(self.call(tool))
        await self.began.wait()
        self.store.hangs = True
        return calling

    async def go_on(self, calling: asyncio.Task[CallResult]) -> CallResult:
        self.store.hangs = False
        self.passes.set()
        self.ends.set()
        return await calling


def envelope(answer: CallResult) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.wire)
    return found


def state(answer: CallResult) -> str:
    found = envelope(answer)
    return str(found["meta"].get("state", "done" if found["ok"] else "failed"))


def run(test: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await test

    asyncio.run(bounded())


# Every state


async def never_called(host: Host, other: Host) -> CallStatus:
    return await other.ledger.status(KEY)


async def done(host: Host, other: Host) -> CallStatus:
    await host.call()
    return await other.ledger.status(KEY)


async def failed(host: Host, other: Host) -> CallStatus:
    host.answer = fail(ErrorType.PERMANENT, "no such address")
    await host.call()
    return await other.ledger.status(KEY)


async def running(host: Host, other: Host) -> CallStatus:
    calling = await host.hang()
    host.store.hangs = False
    status = await other.ledger.status(KEY)
    await host.go_on(calling)
    return status


async def in_doubt(host: Host, other: Host) -> CallStatus:
    calling = await host.hang()
    status = await other.ledger.status(KEY)
    await host.go_on(calling)
    return status


async def is_waiting(host: Host, other: Host) -> CallStatus:
    await host.asked()
    return await other.ledger.status(KEY)


async def is_declined(host: Host, other: Host) -> CallStatus:
    await host.decide(await host.asked(), approve=False)
    return await other.ledger.status(KEY)


async def is_expired(host: Host, other: Host) -> CallStatus:
    await host.asked()
    host.clock.now += EXPIRY
    return await other.ledger.status(KEY)


WAYS = (never_called, done, failed, running, in_doubt, is_waiting, is_declined, is_expired)


def test_every_state_of_a_call_is_reached_and_reported() -> None:
    async def main() -> None:
        seen: dict[CallState, CallStatus] = {}
        for reach in WAYS:
            host = Host(Clock())
            status = await reach(host, Host(host.clock, host))
            assert status.state not in seen
            seen[status.state] = status
        # While the store is unavailable, a status query gets no answer; only a delivery does.
        assert set(seen) == set(CallState) - {CallState.UNKNOWN}
        recorded = {CallState.DONE, CallState.FAILED, CallState.DECLINED, CallState.EXPIRED}
        assert {each for each, status in seen.items() if status.wire} == recorded
        asked = {CallState.WAITING, CallState.DECLINED, CallState.EXPIRED}
        assert {each for each, status in seen.items() if status.pending} == asked

    run(main())


@pytest.mark.parametrize("approve", [True, False])
def test_a_confirmed_call_has_the_state_of_its_run(approve: bool) -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        pending = await host.asked()
        assert (await other.ledger.status_of(pending)).state is CallState.WAITING
        decided = await other.decide(pending, approve=approve)
        expected = CallState.DONE if approve else CallState.DECLINED
        for status in (await host.ledger.status_of(pending), await host.ledger.status(KEY)):
            assert (status.state, status.wire) == (expected, decided.wire)
        assert (await host.call("ask")).wire == decided.wire
        assert len(host.runs) == approve

    run(main())


def test_the_outcome_of_an_approved_call_may_be_published_by_another_process_too() -> None:
    async def main() -> None:
        host, published = Host(Clock()), []

        def publish(event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
            published.append((event, once))

        host.session.publish = publish
        await host.decide(await host.asked())
        assert ("tool_complete", True) in published

    run(main())


def test_a_call_whose_process_died_before_asking_for_confirmation_never_ran() -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        await host.store.claim(KEY, b"f", ttl=DAY)
        host.store.hangs = True
        assert (await other.ledger.status(KEY, always_confirms=True)).state is CallState.NEVER_RUN
        assert (await other.ledger.status(KEY)).state is CallState.IN_DOUBT
        assert await other.ledger.in_doubt() == []

    run(main())


# Expiry


def test_expiry_is_recorded_before_it_is_reported() -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        pending = await host.asked()
        host.clock.now += EXPIRY
        other.store.away = True
        with pytest.raises(StoreUnavailableError):
            await other.ledger.status_of(pending)
        assert (await host.store.outcome(pending.run_key, within=0)).state is ClaimState.FREE
        other.store.away = False
        said = await other.ledger.status_of(pending)
        assert said.state is CallState.EXPIRED
        assert (await host.store.outcome(pending.run_key, within=0)).result == said.wire
        assert (await host.decide(pending)).wire == said.wire
        assert (await host.decide(pending, approve=False)).wire == said.wire
        assert (await host.call("ask")).wire == said.wire
        assert host.runs == []

    run(main())


def test_a_call_approved_in_time_never_expires_however_long_it_runs() -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        pending = await host.asked()
        host.ends.clear()
        approving = asyncio.create_task(host.decide(pending))
        await host.began.wait()
        host.clock.now += 2 * EXPIRY
        assert (await other.ledger.status_of(pending)).state is CallState.RUNNING
        assert not await other.ledger.record_not_run(pending, declined())
        host.ends.set()
        answer = await approving
        assert (await other.ledger.status_of(pending)).wire == answer.wire
        assert (await other.decide(pending, approve=False)).wire == answer.wire

    run(main())


@pytest.mark.parametrize(
    ("remember", "after"),
    [
        (60.0, 70.0),
        (60.0, 2 * DAY + EXPIRY - 10),
        (DAY, DAY + 10),
        (DAY, 2 * DAY + EXPIRY - 10),
        (7 * DAY, 2 * DAY + EXPIRY + 10),
        (7 * DAY, 7 * DAY - 10),
    ],
)
def test_the_outcome_of_an_approved_call_is_reported_as_long_as_its_confirmation_is_kept(
    remember: float, after: float
) -> None:
    async def main() -> None:
        host = Host(Clock(), remember=remember)
        pending = await host.asked()
        answer = await host.decide(pending)
        host.clock.now += after
        await host.store.prune()
        assert await Confirmations(host.store).for_session("s") == [pending]
        assert (await host.ledger.status_of(pending)).wire == answer.wire
        assert (await host.ledger.status(KEY)).wire == answer.wire
        assert (await host.call("ask")).wire == answer.wire
        assert (await host.decide(pending)).wire == answer.wire
        assert host.runs == ["run"]

    run(main())


# Doubt


def test_a_call_in_doubt_is_listed_with_the_facts_needed_to_settle_it() -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        calling = await host.hang()
        (doubtful,) = await other.ledger.in_doubt()
        assert doubtful._asdict() == {
            "key": KEY,
            "tool_id": "send",
            "session_id": "s",
            "user": None,
            "call_id": ID,
            "arguments": "{}",
            "claimed_at": host.clock.now,
            "tool_version": "1.0.0",
            "registry_version": "1.0.00000000",
            "category": "utility",
            "mode": "text",
            "turn": 1,
        }
        host.clock.now += 30 * DAY
        await other.store.prune()
        assert await other.ledger.in_doubt() == [doubtful]
        assert state(await other.call()) == "in_doubt"
        await host.go_on(calling)

    run(main())


@pytest.mark.parametrize(("ran", "told"), [(True, "done"), (False, "never_run")])
def test_a_settled_call_is_answered_with_its_settlement(ran: bool, told: str) -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        calling = await host.hang()
        data = {"found": "in the outbox"} if ran else None
        wire = await other.ledger.settle(KEY, ran=ran, by="ann", data=data)
        assert wire is not None
        settled = json.loads(wire)
        assert settled["meta"]["settled"] == {"ran": ran, "at": host.clock.now, "by": "ann"}
        assert settled["meta"]["toolId"] == "send"
        if ran:
            assert settled["data"] == data
        repeated = await other.call()
        assert (repeated.wire, repeated.replayed, state(repeated)) == (wire, True, told)
        status = await other.ledger.status(KEY)
        assert (status.state, status.wire) == (CallState(told), wire)
        assert await other.ledger.in_doubt() == []
        assert await other.ledger.settle(KEY, ran=not ran, by="bob") is None
        assert host.runs == ["run"]
        await host.go_on(calling)
        assert (await other.call()).wire == wire

    run(main())


@pytest.mark.parametrize(("ran", "told"), [(True, "done"), (False, "never_run")])
def test_settling_an_approved_call_also_answers_its_repetitions_and_approvals(ran: bool, told: str) -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        pending = await host.asked()
        host.ends.clear()
        approving = asyncio.create_task(host.decide(pending))
        await host.began.wait()
        host.store.hangs = True
        assert state(await other.call("ask")) == "in_doubt"
        assert state(await other.decide(pending)) == "in_doubt"
        assert state(await other.decide(pending, approve=False)) == "in_doubt"
        assert [each.key for each in await other.ledger.in_doubt()] == [pending.run_key]
        wire = await other.ledger.settle(pending.run_key, ran=ran, by="ann")
        assert [state(await other.call("ask")), state(await other.decide(pending))] == [told, told]
        assert {(await other.call("ask")).wire, (await other.decide(pending)).wire} == {wire}
        assert (await other.decide(pending, approve=False)).wire == wire
        assert host.runs == ["run"]
        await host.go_on(approving)

    run(main())


def test_only_one_of_many_operators_settles_a_call() -> None:
    async def main() -> None:
        host = Host(Clock())
        others = [Host(host.clock, host) for _ in range(5)]
        calling = await host.hang()
        settled = await asyncio.gather(
            *(each.ledger.settle(KEY, ran=True, by=str(n)) for n, each in enumerate(others))
        )
        (wire,) = [each for each in settled if each is not None]
        assert {(await each.call()).wire for each in others} == {wire}
        await host.go_on(calling)

    run(main())


def test_a_settlement_that_is_not_json_leaves_the_call_in_doubt() -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        calling = await host.hang()
        with pytest.raises(TypeError):
            await other.ledger.settle(KEY, ran=True, by="ann", data=object())
        assert [each.key for each in await other.ledger.in_doubt()] == [KEY]
        assert await other.ledger.settle(KEY, ran=True, by="ann") is not None
        await host.go_on(calling)

    run(main())


def test_a_call_that_is_not_in_doubt_cannot_be_settled() -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        assert await other.ledger.settle(KEY, ran=True, by="ann") is None
        calling = await host.hang()
        host.store.hangs = False
        assert await other.ledger.settle(KEY, ran=True, by="ann") is None
        answer = await host.go_on(calling)
        assert await other.ledger.settle(KEY, ran=False, by="ann") is None
        assert (await other.call()).wire == answer.wire

    run(main())


def test_a_read_whose_process_died_is_run_again() -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        calling = await host.hang("read")
        answer = await other.call("read")
        assert (state(answer), len(host.runs)) == ("done", 2)
        assert await other.ledger.in_doubt() == []
        assert (await host.go_on(calling)).wire == answer.wire

    run(main())


def test_a_store_failure_during_takeover_does_not_block_a_read() -> None:
    async def away(key: str) -> None:
        raise StoreUnavailableError("the test has cut the connection")

    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        calling = await host.hang("read")
        with pytest.MonkeyPatch.context() as monkey:
            monkey.setattr(other.store, "release", away)
            await other.call("read")
        assert state(await other.call("read")) == "done"
        await host.go_on(calling)

    run(main())


def test_a_store_failure_keeps_an_interrupted_confirmation_pending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "RECORD_RETRY_SECONDS", 0.01)

    async def away(key: str, result: bytes, **options: Any) -> bool:
        raise StoreUnavailableError("the test has cut the connection")

    async def main() -> None:
        host = Host(Clock())
        other, third = Host(host.clock, host), Host(host.clock, host)
        asked = asyncio.Event()

        async def hang(key: str, result: bytes, **options: Any) -> bool:
            asked.set()
            return await asyncio.Future()

        # The confirmation is kept, and the answer under the call's own key is not.
        monkeypatch.setattr(host.store, "complete", hang)
        calling = asyncio.create_task(host.call("ask"))
        await asked.wait()
        host.store.hangs = True
        with pytest.MonkeyPatch.context() as monkey:
            monkey.setattr(other.store, "complete", away)
            assert "is unknown" in envelope(await other.call("ask"))["error"]["message"]
        found = await third.store.outcome(KEY, within=20)
        assert found.state is ClaimState.DONE
        assert state(await third.call("ask")) == "waiting"
        calling.cancel()

    run(main())


# Processes wrongly considered dead


@pytest.mark.parametrize("paused_for", [60.0, 3 * DAY])
def test_a_process_wrongly_considered_dead_can_record_its_answer(paused_for: float) -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        calling = await host.hang()
        assert state(await other.call()) == "in_doubt"
        host.clock.now += paused_for
        await other.store.prune()
        answer = await host.go_on(calling)
        assert state(answer) == "done"
        repeated = await other.call()
        assert (repeated.wire, repeated.replayed) == (answer.wire, True)
        assert await other.ledger.in_doubt() == []
        assert await other.ledger.settle(KEY, ran=False, by="ann") is None
        assert host.runs == ["run"]

    run(main())


def test_a_process_reports_its_result_for_a_call_settled_as_never_run() -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        calling = await host.hang()
        await other.ledger.settle(KEY, ran=False, by="ann")
        answer = await host.go_on(calling)
        assert envelope(answer)["data"] == {"sent": True}
        assert host.calls[0].decisions["duplicates"] == "ran, but settled as never run"

    run(main())


def test_a_process_reports_its_result_after_losing_its_claim_and_the_store() -> None:
    async def away(key: str, *, within: float) -> Any:
        raise StoreUnavailableError("the test has cut the connection")

    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        calling = await host.hang()
        await other.ledger.settle(KEY, ran=True, by="ann")
        with pytest.MonkeyPatch.context() as monkey:
            monkey.setattr(host.store, "outcome", away)
            answer = await host.go_on(calling)
        assert envelope(answer)["data"] == {"sent": True}
        assert host.calls[0].decisions["duplicates"] == "result not recorded"

    run(main())


def test_a_process_paused_before_the_handler_detects_its_lost_claim() -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        host.passes.clear()
        calling = asyncio.create_task(host.call())
        await host.reached.wait()
        (call,) = host.calls
        assert call.check_claim is not None
        assert await call.check_claim(call.key)
        host.store.hangs = True
        # No process has taken it over yet.
        assert await call.check_claim(call.key)
        wire = await other.ledger.settle(KEY, ran=False, by="ann")
        assert not await call.check_claim(call.key)
        assert not await host.store.holds(KEY)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        assert (await other.call()).wire == wire
        host.passes.set()

    run(main())


def test_a_harmlessly_repeatable_call_is_not_fenced() -> None:
    async def main() -> None:
        host = Host(Clock())
        await host.call("read")
        assert host.calls[0].check_claim is None

    run(main())


# An unavailable store


def test_an_answer_is_recorded_when_the_store_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "RECORD_RETRY_SECONDS", 0.01)

    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        calling = await host.hang()
        host.store.hangs, host.store.away = False, True
        host.ends.set()
        answer = await calling
        assert envelope(answer)["data"] == {"sent": True}
        assert host.calls[0].decisions["duplicates"] == "result not recorded"
        assert (await other.ledger.status(KEY)).state is CallState.RUNNING
        await asyncio.sleep(0.05)
        host.store.away = False
        # Without another request the host records the answer by itself.
        found = await other.store.outcome(KEY, within=20)
        assert found.result == answer.wire
        assert (await other.call()).wire == answer.wire
        assert host.runs == ["run"]

    run(main())


def test_an_unrecorded_answer_is_repeated_by_its_own_process() -> None:
    async def main() -> None:
        host = Host(Clock())
        calling = await host.hang()
        host.store.away = True
        host.ends.set()
        answer = await calling
        host.store.away = False
        assert (await host.call()).wire == answer.wire
        assert host.runs == ["run"]

    run(main())


def test_a_store_failure_after_another_process_claimed_leaves_the_outcome_unknown() -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        host.passes.clear()
        calling = asyncio.create_task(host.call("read"))
        await host.reached.wait()

        released = asyncio.Event()
        outcome = other.store.outcome

        async def then_away(key: str, *, within: float) -> Any:
            released.set()
            found = await outcome(key, within=within)
            other.store.away = True
            return found

        monkey = pytest.MonkeyPatch()
        monkey.setattr(other.store, "outcome", then_away)
        asking = asyncio.create_task(other.call("read"))
        await released.wait()
        await asyncio.sleep(0)
        calling.cancel()
        error = envelope(await asking)["error"]
        assert (error["type"], error["retryable"], error["partialSideEffects"]) == ("TRANSIENT", True, True)
        assert "the state of this call is unknown" in error["message"]
        monkey.undo()
        other.store.away = False
        host.passes.set()
        assert state(await other.call("read")) == "done"
        assert host.runs == ["run"]

    run(main())


def test_a_store_failure_while_a_pending_call_is_repeated_leaves_the_outcome_unknown() -> None:
    async def main() -> None:
        host = Host(Clock())
        other = Host(host.clock, host)
        await host.asked()
        claim = other.store.claim

        async def then_away(key: str, fingerprint: bytes, **options: Any) -> Any:
            found = await claim(key, fingerprint, **options)
            other.store.away = True
            return found

        with pytest.MonkeyPatch.context() as monkey:
            monkey.setattr(other.store, "claim", then_away)
            answer = envelope(await other.call("ask"))
        assert "the state of this call is unknown" in answer["error"]["message"]
        assert answer["error"]["retryable"] is True
        other.store.away = False
        assert state(await other.call("ask")) == "waiting"

    run(main())


def test_an_unavailable_store_lets_no_call_run() -> None:
    async def main() -> None:
        host = Host(Clock())
        host.store.away = True
        answer = envelope(await host.call())
        assert "so the call was not run" in answer["error"]["message"]
        assert answer["meta"]["state"] == "unknown"
        assert host.runs == []

    run(main())


def test_an_unavailable_store_says_nothing_about_earlier_runs() -> None:
    async def main() -> None:
        host = Host(Clock())
        first = (await host.call()).wire
        host.store.away = True
        answer = envelope(await host.call())
        assert answer["meta"]["state"] == "unknown"
        assert "If the call was made before, its outcome is unaffected." in answer["error"]["message"]
        assert answer["error"]["partialSideEffects"] is True
        host.store.away = False
        assert (await host.call()).wire == first

    run(main())
