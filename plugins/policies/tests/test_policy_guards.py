"""What the kernel enforces for every policy: one run, the approved call, a deadline for every stage."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import jackfield_policies
import pytest
from jackfield import ErrorType, Failure, ToolCall, ToolResponse, fail, ok
from jackfield.governance import Call, Proceed, SyncPolicy
from jackfield.offers import PolicyOffer, Stage
from jackfield_testkit.runtime import TestRuntime, make_tool

POLICIES = list(jackfield_policies.jackfield_policies())
WRITES: dict[str, Any] = {"sideEffects": "writes", "idempotent": False}
READS: dict[str, Any] = {"sideEffects": "read_only", "idempotent": True}
ID = "call_12345678"
GUESTS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "room": {"type": "string"},
        "seats": {"type": "integer", "default": 2},
        "guests": {"type": "array", "items": {"type": "string"}},
    },
}

Apply = Callable[[Call, Proceed], Awaitable[Any]]


class FunctionPolicy:
    """A policy made of one function."""

    def __init__(self, apply: Apply) -> None:
        self.apply = apply

    def applies_to(self, tool: Any, session: Any) -> bool:
        return bool(tool.id == "tool")


def offer(policy: Any, stage: Stage = Stage.SHAPE, rank: int = 99, name: str = "odd") -> PolicyOffer:
    return PolicyOffer(name, stage, rank, lambda settings, services: policy)


class CountingHandler:
    """Counts its runs, and records the arguments of each."""

    def __init__(self, *answers: ToolResponse) -> None:
        self.answers = list(answers)
        self.seen: list[dict[str, Any]] = []

    async def __call__(self, args: dict[str, Any], ctx: Any) -> ToolResponse:
        self.seen.append(copy.deepcopy(args))
        await asyncio.sleep(0)
        return self.answers.pop(0) if self.answers else ok({"done": True})


class RecordingObserver:
    """Keeps the record."""

    def __init__(self) -> None:
        self.calls: list[tuple[Call, ToolResponse]] = []

    def call_finished(self, call: Call, response: ToolResponse) -> None:
        self.calls.append((call, response))


def error(answer: Any) -> Any:
    return json.loads(answer.wire)["error"]


def make_runtime(
    handler: Any, *policies: PolicyOffer, standard: bool = True, more: Any = (), **fields: Any
) -> tuple[TestRuntime, RecordingObserver]:
    watcher = RecordingObserver()
    work = TestRuntime(
        make_tool("tool", handler, **fields),
        *more,
        policies=[*(POLICIES if standard else ()), *policies],
        settings={"recovery": {"pause_ms": 0}},
        observers=[watcher],  # type: ignore[list-item]
    )
    return work, watcher


both_chains = pytest.mark.parametrize("standard", [True, False], ids=["standard", "alone"])


# one run per call


async def twice_in_a_row(call: Call, proceed: Proceed) -> ToolResponse:
    await proceed(call)
    return await proceed(call)


async def twice_at_once(call: Call, proceed: Proceed) -> ToolResponse:
    answers = await asyncio.gather(proceed(call), proceed(call))
    return answers[1]


async def twice_in_tasks(call: Call, proceed: Proceed) -> ToolResponse:
    first = asyncio.ensure_future(proceed(call))
    second = asyncio.ensure_future(proceed(call))
    await first
    return await second


@both_chains
@pytest.mark.parametrize("fields", [WRITES, READS], ids=["writes", "reads"])
@pytest.mark.parametrize("apply", [twice_in_a_row, twice_at_once, twice_in_tasks])
def test_a_policy_that_proceeds_twice_runs_the_handler_once_and_gets_an_error(
    apply: Apply, fields: dict[str, Any], standard: bool, caplog: pytest.LogCaptureFixture
) -> None:
    handler = CountingHandler()
    work, _ = make_runtime(handler, offer(FunctionPolicy(apply)), standard=standard, **fields)
    with caplog.at_level(logging.ERROR):
        answer = asyncio.run(work.call(work.session(), "tool", "{}", ID))
    assert len(handler.seen) == 1
    assert error(answer)["type"] == "INTERNAL"
    assert "is not run again" in error(answer)["message"]
    assert error(answer)["partialSideEffects"] is (fields is WRITES)
    assert "tool" in caplog.text
    assert "odd" in caplog.text


def test_a_policy_that_proceeds_twice_may_return_the_first_answer() -> None:
    async def keeps_the_first(call: Call, proceed: Proceed) -> ToolResponse:
        first = await proceed(call)
        await proceed(call)
        return first

    handler = CountingHandler()
    work, _ = make_runtime(handler, offer(FunctionPolicy(keeps_the_first)), **WRITES)
    answer = asyncio.run(work.call(work.session(), "tool", "{}", ID))
    assert json.loads(answer.wire)["data"] == {"done": True}
    assert len(handler.seen) == 1


def test_a_policy_that_proceeds_after_the_call_was_answered_runs_nothing() -> None:
    later: list[asyncio.Future[ToolResponse]] = []

    async def answers_first(call: Call, proceed: Proceed) -> ToolResponse:
        async def behind() -> ToolResponse:
            await asyncio.sleep(0.02)
            return await proceed(call)

        later.append(asyncio.ensure_future(behind()))
        return fail(ErrorType.PERMANENT, "Not today.")

    handler = CountingHandler()
    work, _ = make_runtime(handler, offer(FunctionPolicy(answers_first)), **WRITES)

    async def main() -> tuple[Any, ToolResponse]:
        answer = await work.call(work.session(), "tool", "{}", ID)
        return answer, await later[0]

    answer, refused = asyncio.run(main())
    assert error(answer)["message"] == "Not today."
    assert refused.failure is not None
    assert refused.failure.type is ErrorType.INTERNAL
    assert handler.seen == []


@pytest.mark.parametrize("how", ["copy", "made up"])
def test_a_policy_that_proceeds_with_another_call_runs_nothing(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def another(call: Call, proceed: Proceed) -> ToolResponse:
        other = (
            copy.copy(call) if how == "copy" else Call(call.tool, call.session, {}, b"{}", "call_87654321")
        )
        return await proceed(other)

    handler = CountingHandler()
    work, _ = make_runtime(handler, offer(FunctionPolicy(another)), **WRITES)
    answer = asyncio.run(work.call(work.session(), "tool", "{}", ID))
    assert (error(answer)["type"], error(answer)["partialSideEffects"]) == ("INTERNAL", False)
    assert handler.seen == []
    assert "odd" in caplog.text


def test_a_policy_cannot_run_another_call_of_the_same_message() -> None:
    calls: list[Call] = []
    both = asyncio.Event()

    async def the_others(call: Call, proceed: Proceed) -> ToolResponse:
        calls.append(call)
        if len(calls) == 2:
            both.set()
        await both.wait()
        return await proceed(calls[0])

    handler = CountingHandler()
    work, _ = make_runtime(handler, offer(FunctionPolicy(the_others)), **READS, parameters=GUESTS)

    async def main() -> list[Any]:
        message = [ToolCall("tool", f'{{"room": "{room}"}}', f"call_room_{room}") for room in "ab"]
        return await work.orchestrator.handle(work.session(), message)

    first, second = asyncio.run(main())
    assert [args["room"] for args in handler.seen] == ["a"]
    assert first.response.ok
    assert error(second)["type"] == "INTERNAL"


def test_a_policy_that_replaces_the_tool_runs_neither(caplog: pytest.LogCaptureFixture) -> None:
    other = CountingHandler()

    async def exchanges(call: Call, proceed: Proceed) -> ToolResponse:
        call.tool = work.orchestrator.registry.tools["other"]
        return await proceed(call)

    handler = CountingHandler()
    work, _ = make_runtime(
        handler, offer(FunctionPolicy(exchanges)), more=[make_tool("other", other, **WRITES)], **WRITES
    )
    answer = asyncio.run(work.call(work.session(), "tool", "{}", ID))
    assert (error(answer)["type"], error(answer)["partialSideEffects"]) == ("INTERNAL", False)
    assert json.loads(answer.wire)["meta"]["toolId"] == "tool"
    assert (handler.seen, other.seen) == ([], [])
    assert "other" in caplog.text


# one retry, and only for harmlessly repeatable calls


class RetryPolicy(SyncPolicy):
    """Retries every failure."""

    def __init__(self, pause: float = 0.0) -> None:
        self.pause = pause

    def retry_after(self, call: Call, failure: Failure) -> float | None:
        return self.pause


BUSY = fail(ErrorType.TRANSIENT, "Busy.", retryable=True)


@pytest.mark.parametrize(
    ("fields", "runs"),
    [
        (READS, 2),
        ({"sideEffects": "read_only", "idempotent": False}, 2),
        ({"sideEffects": "writes", "idempotent": True}, 2),
        (WRITES, 1),
    ],
    ids=["idempotent read", "read", "idempotent write", "write"],
)
def test_a_retry_is_granted_for_harmlessly_repeatable_calls(
    fields: dict[str, Any], runs: int, caplog: pytest.LogCaptureFixture
) -> None:
    handler = CountingHandler(BUSY, ok({"done": True}))
    work, _ = make_runtime(handler, offer(RetryPolicy()), standard=False, **fields)
    answer = asyncio.run(work.call(work.session(), "tool", "{}", ID))
    assert len(handler.seen) == runs
    assert answer.response.ok is (runs == 2)
    assert ("retry" in caplog.text) is (runs == 1)


def test_at_most_one_retry_is_granted() -> None:
    handler = CountingHandler(*[BUSY] * 5)
    more = [offer(RetryPolicy(), rank=rank, name=f"again_{rank}") for rank in (97, 98, 99)]
    work, _ = make_runtime(handler, *more, **READS)
    answer = asyncio.run(work.call(work.session(), "tool", "{}", ID))
    assert error(answer)["message"] == "Busy."
    assert len(handler.seen) == 2


@pytest.mark.parametrize("pause", [float("inf"), float("nan"), 86400.0])
def test_an_endless_retry_delay_is_not_awaited(pause: float, caplog: pytest.LogCaptureFixture) -> None:
    handler = CountingHandler(BUSY)
    work, _ = make_runtime(handler, offer(RetryPolicy(pause)), standard=False, **READS)
    answer = asyncio.run(asyncio.wait_for(work.call(work.session(), "tool", "{}", ID), 10))
    assert error(answer)["message"] == "Busy."
    assert len(handler.seen) == 1
    assert "retry" in caplog.text


# the approved call


async def approved(work: TestRuntime, arguments: str, tool_id: str = "tool") -> Any:
    """Ask for confirmation, then approve as the user's client does."""
    session = work.session(user="ada")
    asked = await work.call(session, tool_id, arguments, ID)
    assert error(asked)["type"] == "CONFIRMATION_REQUIRED"
    (fields,) = [fields for event, fields in work.events if event == "confirmation_required"]
    answer = await work.resolve(session, fields["token"])
    assert answer is not None
    return answer


ASKS: dict[str, Any] = {**WRITES, "requiresConfirmation": True, "parameters": GUESTS}
BOOKED = '{"room": "blue", "guests": ["ada"]}'


def test_an_approved_call_runs_with_the_approved_arguments() -> None:
    handler = CountingHandler()
    work, _ = make_runtime(handler, **ASKS)
    answer = asyncio.run(approved(work, BOOKED))
    assert answer.response.ok
    assert handler.seen == [{"room": "blue", "guests": ["ada"], "seats": 2}]


def test_an_approved_call_is_clamped_once_and_runs() -> None:
    handler = CountingHandler()
    top_k = {"type": "object", "properties": {"top_k": {"type": "integer"}}, "additionalProperties": False}
    work, _ = make_runtime(handler, **{**ASKS, "parameters": top_k})

    async def main() -> Any:
        session = work.session("voice", user="ada")
        await work.call(session, "tool", '{"top_k": 9}', ID)
        (_, fields) = work.events[-1]
        return await work.resolve(session, fields["token"])

    assert asyncio.run(main()).response.ok
    assert handler.seen == [{"top_k": 3}]


def renames(call: Call) -> None:
    call.args["room"] = "red"


def adds(call: Call) -> None:
    call.args["seats"] = 200


def replaces(call: Call) -> None:
    call.args = {"room": "red", "guests": [], "seats": 2}


def invites(call: Call) -> None:
    call.args["guests"].append("mallory")


def spoils(call: Call) -> None:
    call.args["guests"].append(object())


def counts_otherwise(call: Call) -> None:
    call.args["seats"] = 2.0


@pytest.mark.parametrize("change", [renames, adds, replaces, invites, spoils, counts_otherwise])
@pytest.mark.parametrize("waits", [True, False])
def test_arguments_that_changed_after_approval_are_not_run(
    change: Callable[[Call], None], waits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def apply(call: Call, proceed: Proceed) -> ToolResponse:
        change(call)
        return await proceed(call)

    class Changes(SyncPolicy):
        def before(self, call: Call) -> None:
            change(call)

    handler = CountingHandler()
    work, _ = make_runtime(
        handler, offer(FunctionPolicy(apply) if waits else Changes(), name="meddler"), **ASKS
    )
    answer = asyncio.run(approved(work, BOOKED))
    assert handler.seen == []
    assert error(answer)["type"] == "INTERNAL"
    assert error(answer)["partialSideEffects"] is False
    assert error(answer)["message"] == (
        "The arguments changed after the user approved them; nothing was run."
    )
    assert "meddler" in caplog.text


def test_a_handler_that_modifies_nested_arguments_can_be_retried() -> None:
    seen: list[Any] = []

    async def takes_apart(args: dict[str, Any], ctx: Any) -> ToolResponse:
        seen.append(args["guests"].pop())
        return BUSY if len(seen) == 1 else ok({"done": True})

    work, _ = make_runtime(takes_apart, **{**ASKS, "idempotent": True})
    assert asyncio.run(approved(work, BOOKED)).response.ok
    assert seen == ["ada", "ada"]


@pytest.mark.parametrize("claims", [False, True], ids=["silent", "says it was confirmed"])
def test_a_tool_that_requires_confirmation_never_runs_without_approval(
    claims: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def waves_through(call: Call, proceed: Proceed) -> ToolResponse:
        call.confirmed = claims
        return await proceed(call)

    handler = CountingHandler()
    policies = [offer(FunctionPolicy(waves_through), rank=1)]
    work, _ = make_runtime(handler, *policies, standard=claims, **ASKS)
    answer = asyncio.run(work.call(work.session(), "tool", BOOKED, ID))
    assert handler.seen == []
    assert (error(answer)["type"], error(answer)["partialSideEffects"]) == ("INTERNAL", False)
    assert "has not approved" in error(answer)["message"]
    assert "tool" in caplog.text


# a deadline for every stage


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give policies a short timeout and a short time until the next cancellation."""
    monkeypatch.setattr("jackfield.invocation.POLICY_SECONDS", 0.1)
    monkeypatch.setattr("jackfield.invocation.RECANCEL_SECONDS", 0.05)


async def hangs_before(call: Call, proceed: Proceed) -> ToolResponse:
    await asyncio.Event().wait()
    return await proceed(call)


async def hangs_after(call: Call, proceed: Proceed) -> ToolResponse:
    await proceed(call)
    await asyncio.Event().wait()
    return ok("never")


async def hangs_in_a_task(call: Call, proceed: Proceed) -> ToolResponse:
    return await asyncio.ensure_future(hangs_before(call, proceed))


async def hangs_in_a_task_after(call: Call, proceed: Proceed) -> ToolResponse:
    return await asyncio.ensure_future(hangs_after(call, proceed))


async def makes_an_error_of_it(call: Call, proceed: Proceed) -> ToolResponse:
    try:
        return await hangs_before(call, proceed)
    except asyncio.CancelledError:
        raise ConnectionError("closed") from None


BEFORE = [hangs_before, hangs_in_a_task, makes_an_error_of_it]
AFTER = [hangs_after, hangs_in_a_task_after]


def placed(apply: Apply, front: bool) -> PolicyOffer:
    """Place a policy before or after every other one."""
    stage, rank = (Stage.ADMIT, 1) if front else (Stage.SHAPE, 99)
    return offer(FunctionPolicy(apply), stage, rank)


async def answered(work: TestRuntime) -> Any:
    """Return the answer from a task that is not cancelled."""
    task = asyncio.current_task()
    assert task is not None
    answer = await asyncio.wait_for(work.call(work.session(session_id="s"), "tool", "{}", ID), 20)
    assert task.cancelling() == 0
    # A leftover cancellation would show here.
    await asyncio.sleep(0)
    return answer


@pytest.mark.usefixtures("brief")
@both_chains
@pytest.mark.parametrize("front", [True, False], ids=["in front", "behind"])
@pytest.mark.parametrize("fields", [WRITES, READS], ids=["writes", "reads"])
@pytest.mark.parametrize("apply", BEFORE)
def test_a_policy_that_hangs_before_the_handler_times_out_and_nothing_runs(
    apply: Apply, fields: dict[str, Any], front: bool, standard: bool, caplog: pytest.LogCaptureFixture
) -> None:
    handler = CountingHandler()
    work, watcher = make_runtime(handler, placed(apply, front), standard=standard, timeoutMs=1000, **fields)
    answer = asyncio.run(answered(work))
    assert handler.seen == []
    assert (error(answer)["type"], error(answer)["partialSideEffects"]) == ("TRANSIENT", False)
    assert error(answer)["details"] == {"stopped": "policy"}
    assert "was not run" in error(answer)["message"]
    assert len(watcher.calls) == 1
    assert watcher.calls[0][0].policy_trace()["odd"] == "did not finish"
    assert "odd" in caplog.text


@pytest.mark.usefixtures("brief")
@both_chains
@pytest.mark.parametrize("front", [True, False], ids=["in front", "behind"])
@pytest.mark.parametrize("fields", [WRITES, READS], ids=["writes", "reads"])
@pytest.mark.parametrize("apply", AFTER)
def test_a_policy_that_hangs_after_the_handler_times_out_and_the_answer_says_that_it_ran(
    apply: Apply, fields: dict[str, Any], front: bool, standard: bool, caplog: pytest.LogCaptureFixture
) -> None:
    handler = CountingHandler()
    work, watcher = make_runtime(handler, placed(apply, front), standard=standard, **fields)
    answer = asyncio.run(answered(work))
    writes = fields is WRITES
    assert len(handler.seen) == 1
    assert (error(answer)["type"], error(answer)["partialSideEffects"]) == ("TRANSIENT", writes)
    assert error(answer)["retryable"] is not writes
    assert "ran, but a host policy" in error(answer)["message"]
    assert [response.failure and response.failure.type for _, response in watcher.calls] == ["TRANSIENT"]
    assert "odd" in caplog.text


@pytest.mark.usefixtures("brief")
def test_a_write_whose_policy_hung_gets_the_same_answer_again() -> None:
    handler = CountingHandler()
    work, _ = make_runtime(handler, placed(hangs_after, front=False), **WRITES)

    async def main() -> tuple[Any, Any]:
        return await answered(work), await answered(work)

    first, second = asyncio.run(main())
    assert first.wire == second.wire
    assert len(handler.seen) == 1


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("front", [True, False], ids=["in front", "behind"])
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_policy_that_swallows_the_cancellation_is_cancelled_again_and_runs_nothing(
    front: bool, goes_on: bool
) -> None:
    told: list[int] = []
    refused: list[ToolResponse] = []

    async def stubborn(call: Call, proceed: Proceed) -> ToolResponse:
        while len(told) < 3:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told.append(1)
                if goes_on:
                    refused.append(await proceed(call))
        return fail(ErrorType.PERMANENT, "At last.")

    handler = CountingHandler()
    work, _ = make_runtime(handler, placed(stubborn, front), timeoutMs=1000, **WRITES)
    answer = asyncio.run(answered(work))
    assert error(answer)["message"] == "At last."
    assert handler.seen == []
    assert [each.failure and each.failure.partial_side_effects for each in refused] == [False] * len(refused)
    assert len(told) == 3


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("fields", [WRITES, READS], ids=["writes", "reads"])
def test_a_handler_may_take_longer_than_the_policy_timeout(fields: dict[str, Any]) -> None:
    async def slow(args: dict[str, Any], ctx: Any) -> ToolResponse:
        await asyncio.sleep(0.4)
        return ok({"done": True})

    work, _ = make_runtime(slow, **fields)
    assert asyncio.run(answered(work)).response.ok


@pytest.mark.usefixtures("brief")
def test_a_duplicate_waiting_for_the_first_call_does_not_time_out() -> None:
    async def slow(args: dict[str, Any], ctx: Any) -> ToolResponse:
        await asyncio.sleep(0.5)
        return ok({"done": True})

    work, watcher = make_runtime(slow, **WRITES)

    async def main() -> list[Any]:
        return list(await asyncio.gather(answered(work), answered(work)))

    first, second = asyncio.run(main())
    assert first.wire == second.wire
    assert first.response.ok
    assert sorted(call.policy_trace()["duplicates"] for call, _ in watcher.calls) == ["pass", "replayed"]


@pytest.mark.usefixtures("brief")
def test_a_hung_nested_call_times_out_and_its_caller_continues() -> None:
    async def caller(args: dict[str, Any], ctx: Any) -> ToolResponse:
        inner = await ctx.call_tool("tool", {})
        await asyncio.sleep(0)
        return ok({"inner": inner.failure.type})

    work, watcher = make_runtime(
        CountingHandler(), placed(hangs_before, front=False), more=[make_tool("caller", caller)]
    )

    async def main() -> Any:
        return await work.call(work.session(), "caller", "{}", ID)

    assert asyncio.run(main()).response.data == {"inner": "TRANSIENT"}
    assert [call.tool.id for call, _ in watcher.calls] == ["tool", "caller"]


@pytest.mark.parametrize("apply", [hangs_before, hangs_after])
def test_an_external_cancellation_passes_through_a_waiting_policy(apply: Apply) -> None:
    work, watcher = make_runtime(CountingHandler(), placed(apply, front=False), **READS)

    async def main() -> None:
        handling = asyncio.ensure_future(work.call(work.session(), "tool", "{}", ID))
        await asyncio.sleep(0.05)
        handling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await handling

    asyncio.run(main())
    assert len(watcher.calls) == 1


@pytest.mark.usefixtures("brief")
def test_an_external_cancellation_at_the_deadline_passes_through() -> None:
    cancelled = asyncio.Event()

    async def slow_to_obey(call: Call, proceed: Proceed) -> ToolResponse:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            await asyncio.Event().wait()
        return await proceed(call)

    work, _ = make_runtime(CountingHandler(), placed(slow_to_obey, front=False), timeoutMs=1000, **READS)

    async def main() -> int:
        handling = asyncio.ensure_future(work.call(work.session(), "tool", "{}", ID))
        await cancelled.wait()
        handling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await handling
        return handling.cancelling()

    assert asyncio.run(main()) == 1


@pytest.mark.usefixtures("brief")
def test_a_handler_abandoned_by_a_policy_keeps_its_deadline() -> None:
    ended: list[str] = []
    over = asyncio.Event()

    async def endless(args: dict[str, Any], ctx: Any) -> ToolResponse:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stopped")
            over.set()
        return ok()

    left: list[Any] = []

    async def leaves_it(call: Call, proceed: Proceed) -> ToolResponse:
        left.append(asyncio.ensure_future(proceed(call)))
        await asyncio.sleep(0.02)
        return fail(ErrorType.PERMANENT, "Too slow for me.")

    work, _ = make_runtime(endless, placed(leaves_it, front=False), timeoutMs=200, **WRITES)

    async def main() -> Any:
        answer = await answered(work)
        await asyncio.wait_for(over.wait(), 10)
        await left[0]
        return answer

    assert error(asyncio.run(main()))["message"] == "Too slow for me."
    assert ended == ["stopped"]
    assert work.orchestrator.running(work.session(session_id="s")) == []
