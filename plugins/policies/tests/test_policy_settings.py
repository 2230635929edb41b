"""The effect of every setting of a policy."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any

import jackfield_policies
import pytest
from jackfield import ErrorType, ToolResponse, fail, ok
from jackfield.settings import SettingsError, parse_offer
from jackfield.store import MemoryStore
from jackfield_testkit.runtime import TestRuntime, make_tool

PARAMETERS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"n": {"type": "integer"}, "top_k": {"type": "integer", "default": 9}},
}


def make_runtime(handler: Any, settings: Any, store: Any = None, **fields: Any) -> TestRuntime:
    return TestRuntime(
        make_tool("tool", handler, parameters=PARAMETERS, **fields),
        policies=jackfield_policies.jackfield_policies(),
        settings=settings,
        store=store,
    )


async def fine(args: dict[str, Any], ctx: Any) -> ToolResponse:
    return ok({"items": [1]})


def kind(answer: Any) -> str:
    envelope = json.loads(answer.wire)
    return "ok" if envelope["ok"] else str(envelope["error"]["type"])


def meta(answer: Any) -> Any:
    return json.loads(answer.wire)["meta"]


@pytest.mark.parametrize("mode", ["voice", "text"])
@pytest.mark.parametrize(("setting", "category"), [("calls", "utility"), ("retrievals", "retrieval")])
def test_the_setting_limits_the_calls_of_a_turn(mode: Any, setting: str, category: str) -> None:
    work = make_runtime(fine, {"budgets": {f"{mode}_{setting}": 1}}, category=category)
    session = work.session(mode)

    async def main() -> list[str]:
        return [kind(await work.call(session, "tool", json.dumps({"n": n}))) for n in range(2)]

    assert asyncio.run(main()) == ["ok", "BUDGET_EXCEEDED"]


@pytest.mark.parametrize("mode", ["voice", "text"])
def test_the_duration_of_a_turn_is_reported_to_the_model_and_recorded(
    mode: Any, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[dict[str, str]] = []

    class Watcher:
        def call_finished(self, call: Any, response: Any) -> None:
            seen.append(call.policy_trace())

    work = TestRuntime(
        make_tool("tool", fine, parameters=PARAMETERS),
        policies=jackfield_policies.jackfield_policies(),
        settings={"budgets": {f"{mode}_tool_ms": 0.000001}},
        observers=[Watcher()],  # type: ignore[list-item]
    )
    answer = asyncio.run(work.call(work.session(mode), "tool"))
    assert kind(answer) == "ok"
    assert meta(answer)["turnTime"]["budgetMs"] == 0.000001
    assert seen[0]["budgets"] == "over time budget"
    assert "the tools in a turn took" in caplog.text


def test_the_settings_define_when_calls_are_a_loop() -> None:
    async def empty(args: dict[str, Any], ctx: Any) -> ToolResponse:
        return ok([])

    async def run(handler: Any, settings: Any, arguments: list[str]) -> list[str]:
        work = make_runtime(handler, {"loops": settings})
        session = work.session()
        return [
            kind(await work.call(session, "tool", each, f"call_{at:08}")) for at, each in enumerate(arguments)
        ]

    assert asyncio.run(run(fine, {"identical_calls": 2}, ["{}"] * 2)) == ["ok", "LOOP_DETECTED"]
    numbered = [json.dumps({"n": n}) for n in range(3)]
    assert asyncio.run(run(empty, {"empty_results": 3}, numbered)) == ["ok", "ok", "LOOP_DETECTED"]
    never = {"identical_calls": 0, "empty_results": 0}
    assert asyncio.run(run(empty, never, ["{}"] * 4)) == ["ok"] * 4


def test_the_setting_limits_results_in_voice() -> None:
    work = make_runtime(fine, {"clamping": {"voice_top_k": 7}})
    answer = asyncio.run(work.call(work.session("voice"), "tool"))
    assert meta(answer)["clamped"] == {"top_k": {"from": 9, "to": 7}}


@pytest.mark.parametrize(("seconds", "good"), [(9, True), (11, False)])
def test_the_setting_limits_the_time_for_a_confirmation(seconds: int, good: bool) -> None:
    now = 1_000_000.0
    store = MemoryStore(clock=lambda: now)
    work = make_runtime(fine, {"confirmation": {"expiry_seconds": 10}}, store, requiresConfirmation=True)
    session = work.session()

    async def main() -> Any:
        nonlocal now
        await work.call(session, "tool")
        ((_, asked),) = work.events
        now += seconds
        return await work.resolve(session, asked["token"])

    assert asyncio.run(main()).response.ok is good


@pytest.mark.parametrize(("seconds", "runs"), [(9, 1), (11, 2)])
def test_the_setting_limits_how_long_an_answer_is_kept(seconds: int, runs: int) -> None:
    now = 1_000_000.0
    ran: list[int] = []

    async def counted(args: dict[str, Any], ctx: Any) -> ToolResponse:
        ran.append(1)
        return ok({"items": ran})

    store = MemoryStore(clock=lambda: now)
    work = make_runtime(counted, {"duplicates": {"remember_seconds": 10}}, store)
    session = work.session()

    async def main() -> None:
        nonlocal now
        await work.call(session, "tool", "{}", "call_12345678")
        now += seconds
        await work.call(session, "tool", "{}", "call_12345678")

    asyncio.run(main())
    assert len(ran) == runs


def test_the_setting_sets_the_delay_before_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []

    async def sleep(seconds: float) -> None:
        paused.append(seconds)

    async def busy(args: dict[str, Any], ctx: Any) -> ToolResponse:
        return ok({"items": [1]}) if paused else fail(ErrorType.TRANSIENT, "Busy.", retryable=True)

    monkeypatch.setattr("jackfield.policy_chain.asyncio.sleep", sleep)
    work = make_runtime(busy, {"recovery": {"pause_ms": 125}})
    answer = asyncio.run(work.call(work.session(), "tool"))
    assert (kind(answer), paused, meta(answer)["retried"]) == ("ok", [0.125], True)


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ("modes", "this table has no settings"),
        ("confirmation", "known settings: expiry_seconds, trusted"),
        ("loops", "known settings: identical_calls, empty_results"),
    ],
)
def test_an_unknown_setting_is_reported_with_the_known_ones(policy: str, problem: str) -> None:
    fault = rf"^\[policies.{policy}\] loud: unknown setting; {problem}$"
    with pytest.raises(SettingsError, match=fault):
        make_runtime(fine, {policy: {"loud": 1}})


@pytest.mark.parametrize(
    ("policy", "settings", "fault"),
    [
        ("budgets", {"voice_cals": 3}, "voice_cals: unknown setting; did you mean 'voice_calls'?"),
        ("budgets", {"voice_calls": "four"}, "voice_calls: expected an integer of at least 0, got 'four'"),
        ("budgets", {"text_calls": True}, "text_calls: expected an integer of at least 0, got true"),
        ("budgets", {"text_calls": -1}, "text_calls: expected an integer of at least 0, got -1"),
        (
            "recovery",
            {"pause_ms": float("inf")},
            "pause_ms: expected a number of milliseconds, at least 0, got inf",
        ),
        ("confirmation", {"trusted": "x"}, "trusted: expected a list of strings, got 'x'; write ['x']"),
        ("confirmation", {"trusted": [1]}, "trusted[0]: expected a string, got 1"),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(
    policy: str, settings: dict[str, Any], fault: str
) -> None:
    with pytest.raises(SettingsError, match=f"^{re.escape(f'[policies.{policy}] {fault}')}$"):
        make_runtime(fine, {policy: settings})


def test_a_limit_of_one_identical_call_is_refused() -> None:
    fault = r"^\[policies.loops\] identical_calls: 1 would reject every call; use 2 to"
    with pytest.raises(SettingsError, match=fault):
        make_runtime(fine, {"loops": {"identical_calls": 1}})


def test_the_capability_bans_has_no_settings() -> None:
    (offer,) = jackfield_policies.jackfield_capabilities()
    with pytest.raises(SettingsError, match="loud: unknown setting; this table has no settings"):
        parse_offer("capabilities", offer, {"loud": 1})


def test_a_tool_over_its_latency_budget_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def slow(args: dict[str, Any], ctx: Any) -> ToolResponse:
        await asyncio.sleep(0.02)
        return ok({"items": [1]})

    work = make_runtime(slow, {}, latencyBudgetMs=1)
    with caplog.at_level(logging.WARNING):
        asyncio.run(work.call(work.session(), "tool"))
    (record,) = caplog.records
    assert record.getMessage().startswith("tool took ")
    assert record.getMessage().endswith(" ms, over its budget of 1 ms")
