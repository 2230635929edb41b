"""Handlers, policies, observers and stores that misbehave: still one answer per call, and one run."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import jackfield_policies
import pytest
from jackfield import ErrorType, ToolCall, ToolError, ToolResponse, fail, ok
from jackfield.contract.tool import Failure
from jackfield.offers import PolicyOffer, Stage
from jackfield.store import Claim, ClaimState, MemoryStore, StoreUnavailableError
from jackfield_store_sqlite import SqliteStore
from jackfield_testkit.runtime import TestRuntime, make_tool

POLICIES = list(jackfield_policies.jackfield_policies())
WRITES: dict[str, Any] = {"sideEffects": "writes", "idempotent": False}
ID = "call_12345678"


def error(answer: Any) -> Any:
    return json.loads(answer.wire)["error"]


def kind(answer: Any) -> str:
    envelope = json.loads(answer.wire)
    return "ok" if envelope["ok"] else str(envelope["error"]["type"])


async def fine(args: dict[str, Any], ctx: Any) -> ToolResponse:
    return ok({"items": [1]})


def offer(policy: Any, stage: Stage = Stage.SHAPE, rank: int = 99) -> PolicyOffer:
    return PolicyOffer("odd", stage, rank, lambda settings, services: policy)


async def twice(work: TestRuntime) -> list[bytes]:
    session = work.session()
    return [(await work.call(session, "tool", "{}", ID)).wire for _ in range(2)]


# responses that cannot be encoded


def raised() -> ToolResponse:
    raise ToolError(ErrorType.PERMANENT, "No.", details=[1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: fail(ErrorType.PERMANENT, "No.", details={"at": object()}),
        lambda: fail(ErrorType.PERMANENT, "There is no file \udcff."),
        lambda: ToolResponse(failure=Failure("TRANSIENT", "No.")),  # type: ignore[arg-type]
        lambda: ok(1).with_meta(at=object()),
        raised,
    ],
    ids=["details", "surrogate", "type", "meta", "raised"],
)
def test_an_answer_that_is_not_json_is_replaced_and_recorded_as_replaced(make: Any) -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        response: ToolResponse = make()
        return response

    first, second = asyncio.run(twice(TestRuntime(make_tool("tool", handler, **WRITES), policies=POLICIES)))
    assert first == second
    assert json.loads(first)["error"]["type"] == "INTERNAL"
    assert json.loads(first)["error"]["partialSideEffects"] is True


def test_an_answer_too_large_for_the_store_is_reported(tmp_path: Path) -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        return ok("x" * (17 * 1024 * 1024))

    async def main() -> list[bytes]:
        store = await SqliteStore.open(tmp_path / "kept.db")
        answers = await twice(
            TestRuntime(make_tool("tool", handler, **WRITES), policies=POLICIES, store=store)
        )
        await store.close()
        return answers

    first, second = asyncio.run(main())
    assert first == second
    assert "too large to store" in json.loads(first)["error"]["message"]
    assert json.loads(first)["error"]["partialSideEffects"] is True


def test_call_ids_of_any_length_are_distinct(tmp_path: Path) -> None:
    ran: list[int] = []

    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        ran.append(1)
        return ok({"items": ran})

    async def main() -> list[bytes]:
        store = await SqliteStore.open(tmp_path / "kept.db")
        work = TestRuntime(make_tool("tool", handler, **WRITES), policies=POLICIES, store=store)
        session = work.session()
        ids = [f"call_1__thought__{'x' * 5000}{end}" for end in "aab"]
        answers = [(await work.call(session, "tool", "{}", call_id)).wire for call_id in ids]
        await store.close()
        return answers

    first, again, other = asyncio.run(main())
    assert first == again != other
    assert ran == [1, 1]


def test_arguments_modified_by_a_handler_are_intact_for_a_retry_and_the_record() -> None:
    secrets: list[Any] = []
    recorded: list[Any] = []

    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        secrets.append(args.pop("secret"))
        return fail(ErrorType.TRANSIENT, "Busy.", retryable=True)

    class Watcher:
        def call_finished(self, call: Any, response: ToolResponse) -> None:
            recorded.append(call.args)

    parameters = {"type": "object", "properties": {"secret": {"type": "string"}}}
    work = TestRuntime(
        make_tool("tool", handler, parameters=parameters),
        policies=POLICIES,
        settings={"recovery": {"pause_ms": 0}},
        observers=[Watcher()],  # type: ignore[list-item]
    )
    answer = asyncio.run(work.call(work.session(), "tool", '{"secret": "hunter2"}'))
    assert kind(answer) == "TRANSIENT"
    assert secrets == ["hunter2", "hunter2"]
    assert recorded == [{"secret": "hunter2"}]


# third-party policies


class Panic(BaseException):
    pass


class MisbehavingPolicy:
    """Lets a call run, then misbehaves."""

    def __init__(self, how: str) -> None:
        self.how = how

    def applies_to(self, tool: Any, session: Any) -> bool:
        return bool(tool.id == "tool")

    async def apply(self, call: Any, proceed: Any) -> Any:
        response = await proceed(call)
        if self.how == "panics":
            raise Panic
        if self.how == "waits for what was cancelled":
            gone = asyncio.ensure_future(asyncio.sleep(30))
            gone.cancel()
            await gone
        if self.how == "cannot ask the store":
            raise StoreUnavailableError("gone")
        call.meta["at"] = object()
        return response


ODD = ["panics", "waits for what was cancelled", "cannot ask the store", "says what is not JSON"]


@pytest.mark.parametrize("how", ODD)
@pytest.mark.parametrize("policies", [POLICIES, []], ids=["standard", "alone"])
def test_a_policy_that_raises_after_the_handler_keeps_the_answer_and_repeats_no_write(
    how: str, policies: list[PolicyOffer]
) -> None:
    ran: list[int] = []

    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        ran.append(1)
        return ok({"done": True})

    work = TestRuntime(
        make_tool("tool", handler, **WRITES),
        make_tool("read", fine),
        policies=[*policies, offer(MisbehavingPolicy(how))],
    )
    session = work.session()

    async def main() -> list[Any]:
        message = [ToolCall("read", "{}", "call_read_1"), ToolCall("tool", "{}", ID)]
        answers = await work.orchestrator.handle(session, message)
        if policies:
            answers.append(await work.call(session, "tool", "{}", ID))
        return answers

    read, first, *again = asyncio.run(main())
    assert kind(read) == "ok"
    assert kind(first) == "INTERNAL"
    assert error(first)["partialSideEffects"] is True
    assert [each.wire for each in again] == [first.wire] * len(again)
    assert ran == [1]


class FailingStore(MemoryStore):
    """Fails in one operation."""

    def __init__(self, method: str, raises: Exception) -> None:
        super().__init__()

        async def broken(*_: Any, **__: Any) -> Any:
            raise raises

        setattr(self, method, broken)


@pytest.mark.parametrize(
    ("store", "passed"),
    [
        (FailingStore("claim", StoreUnavailableError("gone")), set()),
        (FailingStore("get", StoreUnavailableError("gone")), set()),
        (FailingStore("get", RuntimeError("gone")), {"duplicates"}),
        (FailingStore("complete", StoreUnavailableError("gone")), {"bans", "loops", "validation", "latency"}),
    ],
    ids=["no claim", "no ban", "broken ban", "after it ran"],
)
def test_the_trace_lists_no_policy_that_may_not_have_run(store: Any, passed: set[str]) -> None:
    decided: list[dict[str, str]] = []

    class Watcher:
        def call_finished(self, call: Any, response: ToolResponse) -> None:
            decided.append(call.policy_trace())

    tool = make_tool("tool", fine, **WRITES)
    work = TestRuntime(tool, policies=POLICIES, store=store, observers=[Watcher()])  # type: ignore[list-item]
    asyncio.run(work.call(work.session(), "tool", "{}", ID))
    assert {name for name, decision in decided[0].items() if decision == "pass"} == passed


def test_a_failing_observer_does_not_affect_the_next() -> None:
    told: list[str | None] = []

    class Broken:
        def call_finished(self, call: Any, response: Any) -> None:
            raise RuntimeError

    class Watcher:
        def call_finished(self, call: Any, response: Any) -> None:
            told.append(call.call_id)

    work = TestRuntime(make_tool("tool", fine), observers=[Broken(), Watcher()])  # type: ignore[list-item]
    assert kind(asyncio.run(work.call(work.session(), "tool", "{}", ID))) == "ok"
    assert told == [ID]


# a stopping host, and an unavailable store


def test_a_write_interrupted_by_shutdown_is_in_doubt_and_not_repeated(tmp_path: Path) -> None:
    ran: list[int] = []
    begun = asyncio.Event()

    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        ran.append(1)
        begun.set()
        await asyncio.sleep(30 if len(ran) == 1 else 0)
        return ok({"done": True})

    def work(store: SqliteStore) -> TestRuntime:
        return TestRuntime(make_tool("tool", handler, **WRITES), policies=POLICIES, store=store)

    async def cut_short() -> None:
        runtime = work(store)
        handling = asyncio.ensure_future(runtime.call(runtime.session(session_id="s"), "tool", "{}", ID))
        await begun.wait()
        assert not handling.done()

    async def again() -> Any:
        runtime = work(other)
        try:
            return await runtime.call(runtime.session(session_id="s"), "tool", "{}", ID)
        finally:
            await other.close()
            await store.close()

    store, other = SqliteStore(tmp_path / "kept.db"), SqliteStore(tmp_path / "kept.db")
    asyncio.run(cut_short())
    answer = asyncio.run(again())
    assert "may or may not have taken effect" in error(answer)["message"]
    assert ran == [1]


def test_an_unrecorded_answer_is_repeated_and_recorded_once_the_store_recovers(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"

    async def main(other: sqlite3.Connection) -> tuple[list[bytes], Claim]:
        store = await SqliteStore.open(path, patience=0.05)

        async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
            other.execute("BEGIN IMMEDIATE")
            return ok({"done": True})

        work = TestRuntime(make_tool("tool", handler, **WRITES), policies=POLICIES, store=store)
        session = work.session()
        answers = [(await work.call(session, "tool", "{}", ID)).wire for _ in range(2)]
        other.execute("ROLLBACK")
        answers.append((await work.call(session, "tool", "{}", ID)).wire)
        kept = await store.outcome(f"call/{session.id}/{ID}", within=0)
        await store.close()
        return answers, kept

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        answers, kept = asyncio.run(main(other))
    assert json.loads(answers[0])["data"] == {"done": True}
    assert set(answers) == {answers[0]}
    assert kept == Claim(ClaimState.DONE, answers[0])


def test_a_call_taken_over_while_running_is_recorded_as_such() -> None:
    class TakenOver(MemoryStore):
        async def complete(self, key: str, result: bytes, **options: Any) -> bool:
            return False

        async def outcome(self, key: str, *, within: float) -> Claim:
            return Claim(ClaimState.IN_DOUBT)

    decided: list[dict[str, str]] = []

    class Watcher:
        def call_finished(self, call: Any, response: ToolResponse) -> None:
            decided.append(call.policy_trace())

    tool = make_tool("tool", fine, **WRITES)
    work = TestRuntime(tool, policies=POLICIES, store=TakenOver(), observers=[Watcher()])  # type: ignore[list-item]
    assert kind(asyncio.run(work.call(work.session(), "tool", "{}", ID))) == "ok"
    assert decided[0]["duplicates"] == "result not recorded"


class RaisingStore(MemoryStore):
    """Raises an exception that no store should raise."""

    async def complete(self, key: str, result: bytes, **options: Any) -> bool:
        raise ConnectionResetError

    async def release(self, key: str) -> None:
        raise ConnectionResetError


def test_an_unexpected_store_exception_still_gives_one_answer() -> None:
    ran: list[int] = []

    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        ran.append(1)
        return ok({"done": True})

    work = TestRuntime(make_tool("tool", handler, **WRITES), policies=POLICIES, store=RaisingStore())
    first, second = asyncio.run(twice(work))
    assert first == second
    assert json.loads(first)["error"]["partialSideEffects"] is True
    assert ran == [1]


def test_an_unexpected_store_exception_does_not_block_cancellation() -> None:
    begun = asyncio.Event()

    async def slow(args: dict[str, Any], ctx: Any) -> ToolResponse:
        begun.set()
        await asyncio.sleep(30)
        return ok()

    work = TestRuntime(make_tool("tool", slow), policies=POLICIES, store=RaisingStore())

    async def main() -> None:
        handling = asyncio.ensure_future(work.call(work.session(), "tool"))
        await begun.wait()
        handling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await handling

    asyncio.run(main())


class VanishingStore(MemoryStore):
    """Reports the state of a claim, and then becomes unavailable."""

    def __init__(self, state: ClaimState) -> None:
        super().__init__()
        self.state = state

    async def claim(self, key: str, fingerprint: bytes, **options: Any) -> Claim:
        return Claim(self.state)

    async def outcome(self, key: str, *, within: float) -> Claim:
        raise StoreUnavailableError("gone")

    async def reclaim(self, key: str) -> bool:
        raise StoreUnavailableError("gone")


@pytest.mark.parametrize(
    ("state", "told"),
    [(ClaimState.RUNNING, "is still running"), (ClaimState.IN_DOUBT, "may or may not have taken effect")],
)
def test_a_call_that_may_have_run_is_never_reported_as_not_run(state: ClaimState, told: str) -> None:
    work = TestRuntime(make_tool("tool", fine, **WRITES), policies=POLICIES, store=VanishingStore(state))
    answer = asyncio.run(work.call(work.session(), "tool", "{}", ID))
    assert told in error(answer)["message"]
    assert error(answer)["partialSideEffects"] is True


class StoreLossPolicy:
    """A policy that finds the store unavailable after the handler has run."""

    def applies_to(self, tool: Any, session: Any) -> bool:
        return True

    async def apply(self, call: Any, proceed: Any) -> ToolResponse:
        await proceed(call)
        raise StoreUnavailableError("gone")


def test_a_read_that_ran_before_a_store_failure_is_not_reported_as_not_run() -> None:
    ran: list[int] = []

    async def handler(args: dict[str, Any], ctx: Any) -> ToolResponse:
        ran.append(1)
        return ok({"done": True})

    lost = PolicyOffer("loses_the_store", Stage.SHAPE, 90, lambda _settings, _services: StoreLossPolicy())
    work = TestRuntime(make_tool("tool", handler), policies=[*POLICIES, lost])
    answer = asyncio.run(work.call(work.session(), "tool", "{}", ID))
    assert ran == [1]
    assert "ran nothing" not in error(answer)["message"]
    assert "state" not in json.loads(answer.wire)["meta"]


# tools that call tools


def test_calls_made_by_a_write_count_in_its_turn() -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def long(args: dict[str, Any], ctx: Any) -> ToolResponse:
        begun.set()
        await goes_on.wait()
        return ok([(await ctx.call_tool("read", {})).ok for _ in range(3)])

    work = TestRuntime(make_tool("long", long, **WRITES), make_tool("read", fine), policies=POLICIES)

    async def main() -> tuple[list[bool], int]:
        session = work.session("voice")
        handling = asyncio.ensure_future(work.call(session, "long", "{}", ID))
        await begun.wait()
        session.begin_turn()
        goes_on.set()
        answer = await handling
        return answer.response.data, session.turn.calls

    called, counted = asyncio.run(main())
    assert called == [True, True, False]
    assert counted == 0


def test_a_queued_write_counts_in_the_turn_that_requested_it() -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def write(args: dict[str, Any], ctx: Any) -> ToolResponse:
        begun.set()
        await goes_on.wait()
        return ok({"done": True})

    work = TestRuntime(
        make_tool("tool", write, **WRITES), policies=POLICIES, settings={"loops": {"identical_calls": 0}}
    )

    async def main() -> tuple[list[str], int]:
        session = work.session("voice")
        message = [ToolCall("tool", "{}", f"call_0000000{number}") for number in range(4)]
        handling = asyncio.ensure_future(work.orchestrator.handle(session, message))
        await begun.wait()
        session.begin_turn()
        goes_on.set()
        return [kind(answer) for answer in await handling], session.turn.calls

    assert asyncio.run(main()) == (["ok", "ok", "ok", "BUDGET_EXCEEDED"], 0)


def test_a_called_tool_runs_for_every_caller() -> None:
    ran: list[int] = []

    async def template(args: dict[str, Any], ctx: Any) -> ToolResponse:
        ran.append(1)
        return ok({"items": ran})

    async def caller(args: dict[str, Any], ctx: Any) -> ToolResponse:
        return await ctx.call_tool("send_template", {})  # type: ignore[no-any-return]

    work = TestRuntime(
        make_tool("send_template", template, **WRITES),
        make_tool("caller", caller, **WRITES),
        policies=POLICIES,
    )
    session = work.session()

    async def main() -> None:
        for number in range(2):
            await work.call(session, "caller", "{}", f"call_0000000{number}")

    asyncio.run(main())
    assert ran == [1, 1]


class RecordingObserver:
    """An observer that keeps the record."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None]] = []

    def call_finished(self, call: Any, response: ToolResponse) -> None:
        self.calls.append((call.tool.id, response.failure and response.failure.message))


def test_a_forbidden_call_by_a_tool_is_recorded() -> None:
    async def around(args: dict[str, Any], ctx: Any) -> ToolResponse:
        refused = [await ctx.call_tool("around", {}), await ctx.call_tool("read", {"n": object()})]
        return ok([each.ok for each in refused])

    told = RecordingObserver()
    work = TestRuntime(make_tool("around", around), make_tool("read", fine), observers=[told])  # type: ignore[list-item]
    assert asyncio.run(work.call(work.session(), "around")).response.data == [False, False]
    (circle, why), (read, how), last = told.calls
    assert (circle, read, last) == ("around", "read", ("around", None))
    assert why is not None
    assert "form a cycle" in why
    assert how is not None
    assert "not JSON" in how


def test_a_call_with_a_closed_event_loop_does_not_affect_others() -> None:
    async def slow(args: dict[str, Any], ctx: Any) -> ToolResponse:
        await asyncio.sleep(30)
        return ok()

    told = RecordingObserver()
    work = TestRuntime(make_tool("tool", slow), observers=[told])  # type: ignore[list-item]

    async def main() -> None:
        handling = work.orchestrator.handle(work.session(), [ToolCall("tool", "{}")])
        handling.send(None)
        handling.close()

    asyncio.run(main())
    assert told.calls == []


def test_an_abandoned_call_is_recorded() -> None:
    begun = asyncio.Event()

    async def inner(args: dict[str, Any], ctx: Any) -> ToolResponse:
        begun.set()
        await asyncio.sleep(30)
        return ok()

    async def outer(args: dict[str, Any], ctx: Any) -> ToolResponse:
        await ctx.call_tool("inner", {})
        return ok()

    told = RecordingObserver()
    work = TestRuntime(make_tool("outer", outer), make_tool("inner", inner), observers=[told])  # type: ignore[list-item]

    async def main() -> None:
        session = work.session()
        handling = asyncio.ensure_future(work.call(session, "outer"))
        await begun.wait()
        work.orchestrator.interrupt(session)
        await handling

    asyncio.run(main())
    assert [name for name, _ in told.calls] == ["inner", "outer"]
    assert all(message for _, message in told.calls)
