"""The observable effect of each policy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import jackfield_policies
import pytest
from jackfield import ErrorType, Intent, ToolCall, ToolResponse, fail, ok, strict_json
from jackfield.offers import IntentHandlerOffer, PolicyOffer, Stage
from jackfield.settings import SettingsError
from jackfield.store import Claim, ClaimState, MemoryStore, StoreUnavailableError
from jackfield_policies.access import Bans
from jackfield_testkit.runtime import TestRuntime, make_tool

POLICIES = list(jackfield_policies.jackfield_policies())
ANY = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"q": {"type": "string"}, "top_k": {"type": "integer", "default": 5}},
}


class CountingHandler:
    """A handler that counts its runs and returns given answers."""

    def __init__(self, *answers: ToolResponse) -> None:
        self.answers = list(answers) or [ok({"items": [1]})]
        self.runs: list[dict[str, Any]] = []

    async def __call__(self, args: dict[str, Any], ctx: Any) -> ToolResponse:
        self.runs.append(dict(args))
        await asyncio.sleep(0)
        return self.answers[min(len(self.runs), len(self.answers)) - 1]


def make_runtime(handler: Any, *, settings: Any = None, store: Any = None, **fields: Any) -> TestRuntime:
    fields.setdefault("parameters", ANY)
    return TestRuntime(
        make_tool("tool", handler, **fields),
        policies=POLICIES,
        capabilities=jackfield_policies.jackfield_capabilities(),
        settings=settings,
        store=store,
    )


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(main)


def failure(answer: Any) -> Any:
    return json.loads(answer.wire)["error"]


def kind(answer: Any) -> str:
    envelope = json.loads(answer.wire)
    return "ok" if envelope["ok"] else envelope["error"]["type"]


# duplicates


def test_a_repeated_call_id_runs_once_and_gets_identical_bytes() -> None:
    handler = CountingHandler(ok({"n": 1}), ok({"n": 2}))
    work = make_runtime(handler)
    session = work.session()

    async def main() -> list[bytes]:
        calls = [work.call(session, "tool", '{"q": "x"}', "call_123456") for _ in range(100)]
        together = await asyncio.gather(*calls)
        session.begin_turn()
        later = await work.call(session, "tool", '{ "q":"x" }', "call_123456")
        return [answer.wire for answer in (*together, later)]

    assert len(set(run(main()))) == 1
    assert len(handler.runs) == 1


def test_calls_with_unstable_ids_are_matched_by_tool_arguments_and_turn() -> None:
    handler = CountingHandler()
    work = make_runtime(handler)
    session = work.session()

    async def main() -> None:
        for call_id in (None, "short", "temp_123456789"):
            await work.call(session, "tool", '{"q": "x"}', call_id)
        assert len(handler.runs) == 1
        await work.call(session, "tool", '{"q": "y"}')
        session.begin_turn()
        await work.call(session, "tool", '{"q": "x"}')

    run(main())
    assert len(handler.runs) == 3


def test_the_same_id_with_other_arguments_is_a_conflict() -> None:
    handler = CountingHandler()
    work = make_runtime(handler)
    session = work.session()

    async def main() -> Any:
        await work.call(session, "tool", '{"q": "x"}', "call_123456")
        return await work.call(session, "tool", '{"q": "y"}', "call_123456")

    assert kind(run(main())) == ErrorType.CONFLICT
    assert len(handler.runs) == 1


def test_the_same_id_in_another_session_is_another_call() -> None:
    handler = CountingHandler()
    work = make_runtime(handler)

    async def main() -> None:
        for _ in range(2):
            await work.call(work.session(), "tool", "{}", "call_123456")

    run(main())
    assert len(handler.runs) == 2


class DeadHolderStore(MemoryStore):
    """A store in which the first holder of a claim has died."""

    async def claim(self, key: str, fingerprint: bytes, **options: Any) -> Claim:
        claim = await super().claim(key, fingerprint, **options)
        return Claim(ClaimState.IN_DOUBT) if claim.state is ClaimState.RUNNING else claim

    async def reclaim(self, key: str) -> bool:
        return True


@pytest.mark.parametrize(("idempotent", "runs"), [(True, 1), (False, 0)])
def test_a_call_of_a_dead_process_is_reported_or_repeated_if_harmless(idempotent: bool, runs: int) -> None:
    handler = CountingHandler()
    store = DeadHolderStore()
    work = make_runtime(handler, store=store, sideEffects="writes", idempotent=idempotent)
    session = work.session()

    async def main() -> list[Any]:
        await store.claim(f"call/{session.id}/call_123456", _fingerprint(work, "{}"), ttl=60)
        return [await work.call(session, "tool", "{}", "call_123456") for _ in range(2)]

    first, second = run(main())
    assert failure_or_data(first) == failure_or_data(second)
    assert len(handler.runs) == runs
    if not idempotent:
        assert json.loads(first.wire)["meta"]["state"] == "in_doubt"
        assert failure(first)["partialSideEffects"] is True
        assert "may or may not have taken effect" in failure(first)["message"]


def failure_or_data(answer: Any) -> Any:
    envelope = json.loads(answer.wire)
    return envelope["data"] if envelope["ok"] else envelope["error"]


def _fingerprint(work: TestRuntime, arguments: str) -> bytes:
    from jackfield.governance import Call
    from jackfield.strict_json import parse_arguments

    tool = work.orchestrator.registry.tools["tool"]
    return Call(tool, work.session(), *parse_arguments(arguments), None).fingerprint


class UnavailableStore(MemoryStore):
    """A store that is unavailable while `gone` is set."""

    gone = True

    async def claim(self, key: str, fingerprint: bytes, **options: Any) -> Claim:
        if self.gone:
            raise StoreUnavailableError("no such server")
        return await super().claim(key, fingerprint, **options)


def test_calls_fail_without_the_store_and_run_again_with_it() -> None:
    handler = CountingHandler()
    store = UnavailableStore()
    work = make_runtime(handler, store=store)
    session = work.session()

    async def main() -> tuple[Any, Any]:
        refused = await work.call(session, "tool", "{}", "call_123456")
        store.gone = False
        return refused, await work.call(session, "tool", "{}", "call_123456")

    refused, answered = run(main())
    assert failure(refused)["type"] == "TRANSIENT"
    assert failure(refused)["partialSideEffects"] is False
    assert "no such server" not in refused.wire.decode()
    assert kind(answered) == "ok"
    assert len(handler.runs) == 1


# modes, availability, bans, rate limits


def test_a_tool_is_refused_in_a_mode_it_does_not_allow() -> None:
    handler = CountingHandler()
    work = make_runtime(handler, allowedModes=["text"])
    assert kind(run(work.call(work.session("voice"), "tool"))) == ErrorType.MODE_RESTRICTED
    assert kind(run(work.call(work.session("text"), "tool"))) == "ok"
    assert len(handler.runs) == 1


@pytest.mark.parametrize(
    ("availability", "facts", "expected"),
    [
        ({"mode": "voice"}, {}, "MODE_RESTRICTED"),
        ({"user": {"authenticated": True}}, {}, "AUTH"),
        ({"user": {"authenticated": True}}, {"user": "ada"}, "ok"),
        ({"user": {"authenticated": False}}, {"user": "ada"}, "AUTH"),
        ({"user": {"roles": ["staff"]}}, {"user": "ada"}, "AUTH"),
        ({"user": {"roles": ["staff"]}}, {"user": "ada", "roles": frozenset({"staff"})}, "ok"),
        ({"capabilities": ["telepathy"]}, {}, "NOT_FOUND"),
        ({"capabilities": ["bans"]}, {}, "ok"),
    ],
)
def test_unavailable_tools_are_refused_with_the_reason(availability: Any, facts: Any, expected: str) -> None:
    work = make_runtime(CountingHandler(), availability=availability)
    assert kind(run(work.call(work.session(**facts), "tool"))) == expected


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (["telepathy"], "tool needs telepathy, which is not installed."),
        (["telepathy", "levitation"], "tool needs levitation, telepathy, which are not installed."),
    ],
)
def test_missing_capabilities_are_named(capabilities: list[str], expected: str) -> None:
    work = make_runtime(CountingHandler(), availability={"capabilities": capabilities})
    assert failure(run(work.call(work.session(), "tool")))["message"] == expected


def test_a_ban_applies_to_all_sessions_of_a_user_and_says_how_long() -> None:
    now = 1000.0
    store = MemoryStore(clock=lambda: now)
    work = make_runtime(CountingHandler(), store=store)
    bans = Bans(store)

    async def main() -> None:
        nonlocal now
        assert await bans.add("ada", 60) == 1060
        assert await bans.add("ada", 60) == 1120
        refused = await work.call(work.session("voice", user="ada"), "tool")
        assert failure(refused)["details"] == {"retryAfterSeconds": 120}
        assert kind(await work.call(work.session(user="grace"), "tool")) == "ok"
        now += 121
        assert await bans.remaining("ada") == 0
        assert kind(await work.call(work.session(user="ada"), "tool")) == "ok"
        assert await bans.add("ada", 30) == now + 30, "an expired ban is paid for"

    run(main())


def test_a_rate_limit_applies_across_sessions_of_a_user_until_its_window_ends() -> None:
    now = 1000.0
    store = MemoryStore(clock=lambda: now)
    work = make_runtime(CountingHandler(), store=store, rateLimit={"calls": 2, "windowMs": 60_000})

    async def main() -> list[str]:
        nonlocal now
        kinds = [kind(await work.call(work.session(user="ada"), "tool")) for _ in range(3)]
        kinds.append(kind(await work.call(work.session(user="grace"), "tool")))
        now += 61
        return [*kinds, kind(await work.call(work.session(user="ada"), "tool"))]

    assert run(main()) == ["ok", "ok", "RATE_LIMIT", "ok", "ok"]


# budgets


def turn_of(mode: Any, category: str, count: int, settings: Any = None) -> list[str]:
    work = make_runtime(CountingHandler(), category=category, settings=settings)
    session = work.session(mode)

    async def main() -> list[str]:
        return [kind(await work.call(session, "tool", json.dumps({"q": str(n)}))) for n in range(count)]

    kinds: list[str] = run(main())
    return kinds


def test_the_third_retrieval_and_the_fourth_call_of_a_voice_turn_are_refused() -> None:
    assert turn_of("voice", "retrieval", 3) == ["ok", "ok", "BUDGET_EXCEEDED"]
    assert turn_of("voice", "utility", 4) == ["ok", "ok", "ok", "BUDGET_EXCEEDED"]


def test_text_turns_allow_five_searches_and_unlimited_computations() -> None:
    assert turn_of("text", "retrieval", 6) == ["ok"] * 5 + ["BUDGET_EXCEEDED"]
    assert turn_of("text", "utility", 12) == ["ok"] * 12


def test_budgets_are_configurable_and_reset_with_a_new_turn() -> None:
    assert turn_of("text", "retrieval", 2, {"budgets": {"text_retrievals": 1}}) == ["ok", "BUDGET_EXCEEDED"]
    work = make_runtime(CountingHandler(), category="retrieval")
    session = work.session("voice")

    async def main() -> None:
        for _ in range(3):
            assert kind(await work.call(session, "tool", '{"q": "a"}')) == "ok"
            session.begin_turn()

    run(main())


def test_budgets_apply_to_concurrent_calls() -> None:
    handler = CountingHandler()
    work = make_runtime(handler, category="retrieval")
    session = work.session("voice")
    calls = [ToolCall("tool", json.dumps({"q": str(n)})) for n in range(10)]
    answers = run(work.orchestrator.handle(session, calls))
    assert [kind(answer) for answer in answers].count("ok") == 2
    assert len(handler.runs) == 2


def test_an_overlong_turn_is_reported() -> None:
    work = make_runtime(CountingHandler(), settings={"budgets": {"voice_tool_ms": 0.000001}})
    answer = run(work.call(work.session("voice"), "tool"))
    assert json.loads(answer.wire)["meta"]["turnTime"]["budgetMs"] == 0.000001


# loops, clamping, recovery, latency


def test_the_third_identical_call_of_a_turn_is_a_loop() -> None:
    handler = CountingHandler()
    work = make_runtime(handler)
    session = work.session()

    async def main() -> list[str]:
        kinds = [kind(await work.call(session, "tool", '{"q": "x"}', f"call_{n:06}")) for n in range(4)]
        session.begin_turn()
        return [*kinds, kind(await work.call(session, "tool", '{"q": "x"}', "call_999999"))]

    assert run(main()) == ["ok", "ok", "LOOP_DETECTED", "LOOP_DETECTED", "ok"]
    assert len(handler.runs) == 3


@pytest.mark.parametrize(
    ("data", "empty"),
    [
        (None, True),
        ([], True),
        ({}, True),
        ({"items": [], "total": 0}, True),
        ({"items": [1], "similar": []}, False),
        ({"count": 0}, False),
        (0, False),
        (False, False),
        ("text", False),
    ],
)
def test_a_second_empty_result_of_a_tool_is_a_loop(data: Any, empty: bool) -> None:
    work = make_runtime(CountingHandler(ok(data)))
    session = work.session()

    async def main() -> list[str]:
        return [kind(await work.call(session, "tool", json.dumps({"q": str(n)}))) for n in range(2)]

    assert run(main()) == ["ok", "LOOP_DETECTED" if empty else "ok"]


def test_empty_results_of_calls_made_at_the_same_time_count_once() -> None:
    gate = asyncio.Event()

    async def search(args: Any, ctx: Any) -> ToolResponse:
        if args["q"] == "last":
            await gate.wait()
        return ok([])

    work = make_runtime(search)
    session = work.session()

    async def main() -> tuple[list[str], str]:
        last = asyncio.ensure_future(work.call(session, "tool", '{"q": "last"}', "call_000001"))
        await asyncio.sleep(0)
        first = await work.call(session, "tool", '{"q": "first"}', "call_000002")
        gate.set()
        together = [kind(first), kind(await last)]
        return together, kind(await work.call(session, "tool", '{"q": "later"}', "call_000003"))

    assert run(main()) == (["ok", "ok"], "LOOP_DETECTED")


@pytest.mark.parametrize("does", ["writes", "asks for a change"])
def test_an_action_with_an_empty_result_is_not_a_loop(does: str) -> None:
    effects = "writes" if does == "writes" else "none"
    intents = () if does == "writes" else (Intent("END_VOICE_SESSION"),)
    work = TestRuntime(
        make_tool("tool", CountingHandler(ok(None, *intents)), sideEffects=effects, parameters=ANY),
        policies=POLICIES,
        intents=[IntentHandlerOffer("END_VOICE_SESSION", lambda settings, services: AcceptingHandler())],
    )
    session = work.session()

    async def main() -> list[str]:
        return [kind(await work.call(session, "tool", json.dumps({"q": str(n)}))) for n in range(3)]

    assert run(main()) == ["ok"] * 3


class AcceptingHandler:
    def refusal(self, session: Any, params: Any) -> str | None:
        return None

    def apply(self, session: Any, params: Any) -> None:
        return None


def test_voice_clamps_top_k_and_its_default_and_says_so() -> None:
    handler = CountingHandler()
    work = make_runtime(handler)

    async def main() -> list[Any]:
        return [
            await work.call(work.session(mode), "tool", args)
            for mode in ("voice", "text")
            for args in ("{}", '{"top_k": 2}')
        ]

    clamped, small, text, _ = run(main())
    assert [each["top_k"] for each in handler.runs] == [3, 2, 5, 2]
    assert json.loads(clamped.wire)["meta"]["clamped"] == {"top_k": {"from": 5, "to": 3}}
    assert "clamped" not in json.loads(small.wire)["meta"]
    assert "clamped" not in json.loads(text.wire)["meta"]


PASSING = fail(ErrorType.TRANSIENT, "Busy.", retryable=True)


@pytest.mark.parametrize(
    ("mode", "first", "idempotent", "runs", "expected"),
    [
        ("text", PASSING, True, 2, "ok"),
        ("voice", PASSING, True, 1, "TRANSIENT"),
        ("text", PASSING, False, 1, "TRANSIENT"),
        ("text", fail(ErrorType.TRANSIENT, "Busy."), True, 1, "TRANSIENT"),
        ("text", fail(ErrorType.PERMANENT, "No.", retryable=True), True, 1, "PERMANENT"),
    ],
)
def test_only_retryable_transient_failures_in_text_are_retried(
    mode: Any, first: ToolResponse, idempotent: bool, runs: int, expected: str
) -> None:
    handler = CountingHandler(first, ok({"fine": 1}))
    work = make_runtime(handler, idempotent=idempotent, settings={"recovery": {"pause_ms": 1}})
    assert kind(run(work.call(work.session(mode), "tool"))) == expected
    assert len(handler.runs) == runs


def test_a_slow_tool_is_noted() -> None:
    async def slow(args: Any, ctx: Any) -> ToolResponse:
        await asyncio.sleep(0.02)
        return ok(1)

    work = make_runtime(slow, latencyBudgetMs=1)
    assert json.loads(run(work.call(work.session(), "tool")).wire)["meta"]["late"]["budgetMs"] == 1


# confirmation


def make_confirmed_runtime(handler: Any, **fields: Any) -> TestRuntime:
    return make_runtime(
        handler,
        sideEffects="writes",
        idempotent=False,
        requiresConfirmation=True,
        preview="Say {q}?",
        **fields,
    )


def token_of(work: TestRuntime) -> str:
    (event, fields), *_ = work.events
    assert event == "confirmation_required"
    return str(fields["token"])


def test_a_call_waits_for_confirmation_and_the_model_never_sees_the_token() -> None:
    handler = CountingHandler(ok({"done": True}))
    work = make_confirmed_runtime(handler)
    session = work.session(user="ada")

    async def main() -> None:
        pending = await work.call(session, "tool", '{"q": "hello"}', "call_123456")
        token = token_of(work)
        assert kind(pending) == "CONFIRMATION_REQUIRED"
        assert failure(pending)["confirmation_request"]["preview"] == "Say hello?"
        assert "Not run yet" in failure(pending)["message"]
        assert token not in pending.wire.decode()
        assert handler.runs == []

        again = await work.call(session, "tool", '{"q": "hello"}', "call_123456")
        assert again.wire == pending.wire
        assert len(work.events) == 1, "asked once"

        answer: Any = await work.resolve(session, token)
        assert kind(answer) == "ok"
        assert answer.call_id == "call_123456"
        assert handler.runs == [{"q": "hello", "top_k": 5}]

        approved_again: Any = await work.resolve(session, token)
        assert approved_again.wire == answer.wire
        declined_now: Any = await work.resolve(session, token, approve=False)
        assert declined_now.wire == answer.wire
        repeated = await work.call(session, "tool", '{"q": "hello"}', "call_123456")
        assert repeated.wire == answer.wire
        assert len(handler.runs) == 1

    run(main())


def test_only_one_of_a_hundred_redemptions_of_a_token_succeeds() -> None:
    handler = CountingHandler(ok({"done": True}))
    work = make_confirmed_runtime(handler)
    session = work.session()

    async def main() -> list[Any]:
        await work.call(session, "tool")
        return list(await asyncio.gather(*(work.resolve(session, token_of(work)) for _ in range(100))))

    answers = run(main())
    assert len(handler.runs) == 1
    assert len({answer.wire for answer in answers}) == 1
    assert sum(not answer.replayed for answer in answers) == 1


def test_one_of_many_concurrent_decisions_applies_to_all() -> None:
    handler = CountingHandler(ok({"done": True}))
    work = make_confirmed_runtime(handler)
    session = work.session()

    async def main() -> list[Any]:
        await work.call(session, "tool")
        token = token_of(work)
        decisions = (work.resolve(session, token, approve=n % 2 == 1) for n in range(50))
        return list(await asyncio.gather(*decisions))

    answers = run(main())
    (outcome,) = {answer.wire for answer in answers}
    assert len(handler.runs) == (1 if json.loads(outcome)["ok"] else 0)
    assert [event for event, _ in work.events].count("confirmation_settled") == 1


@pytest.mark.parametrize("stranger", [{"user": "grace"}, {"user": "ada"}, {}])
def test_a_token_is_rejected_for_another_session_or_user_and_stays_valid(stranger: Any) -> None:
    work = make_confirmed_runtime(CountingHandler())
    session = work.session(user="ada")

    async def main() -> None:
        await work.call(session, "tool")
        token = token_of(work)
        assert await work.resolve(work.session(**stranger), token) is None
        assert await work.resolve(work.session(session_id=session.id, user="grace"), token) is None
        for guess in ("guess", "", "../x", token.partition(".")[0], f"{token}x", "x" * 5000):
            assert await work.resolve(session, guess) is None
        assert kind(await work.resolve(session, token)) == "ok"

    run(main())


def test_a_token_expires() -> None:
    now = 1000.0
    handler = CountingHandler()
    work = make_confirmed_runtime(handler, store=MemoryStore(clock=lambda: now))
    session = work.session()

    async def main() -> list[Any]:
        nonlocal now
        await work.call(session, "tool", "{}", "call_123456")
        now += 301
        late = await work.resolve(session, token_of(work))
        declined = await work.resolve(session, token_of(work), approve=False)
        return [late, declined, await work.call(session, "tool", "{}", "call_123456")]

    outcomes = [json.loads(answer.wire) for answer in run(main())]
    assert [each["meta"]["state"] for each in outcomes] == ["expired"] * 3
    assert "was not run" in outcomes[0]["error"]["message"]
    assert handler.runs == []


def test_a_declined_call_stays_declined() -> None:
    handler = CountingHandler()
    work = make_confirmed_runtime(handler)
    session = work.session()

    async def main() -> list[Any]:
        await work.call(session, "tool", "{}", "call_123456")
        token = token_of(work)
        answers = [await work.resolve(session, token, approve=approve) for approve in (False, True)]
        return [*answers, await work.call(session, "tool", "{}", "call_123456")]

    outcomes = [json.loads(answer.wire) for answer in run(main())]
    assert [each["meta"]["state"] for each in outcomes] == ["declined"] * 3
    assert handler.runs == []


@pytest.mark.parametrize(("trusted", "expected"), [([], "CONFIRMATION_REQUIRED"), (["tool"], "ok")])
def test_a_tool_with_policy_confirmation_asks_unless_trusted(trusted: Any, expected: str) -> None:
    work = make_runtime(
        CountingHandler(), requiresConfirmation="policy", settings={"confirmation": {"trusted": trusted}}
    )
    assert kind(run(work.call(work.session(), "tool"))) == expected


# settings and the policy trace


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        ("budgets", {"voice_call": 3}),
        ("budgets", {"voice_calls": "three"}),
        ("budgets", {"voice_calls": -1}),
        ("budgets", {"voice_calls": float("nan")}),
        ("confirmation", {"expiry_seconds": float("inf")}),
        ("confirmation", {"trusted": "tool"}),
        ("modes", {"anything": 1}),
    ],
)
def test_an_invalid_setting_is_rejected_with_its_name(policy: str, settings: Any) -> None:
    with pytest.raises(SettingsError, match=f"policies.{policy}"):
        make_runtime(CountingHandler(), settings={policy: settings})


def test_the_policy_trace_shows_who_refused_and_who_was_not_reached() -> None:
    seen: list[dict[str, str]] = []

    class Watcher:
        def call_finished(self, call: Any, response: Any) -> None:
            seen.append(call.policy_trace())

    work = TestRuntime(
        make_tool("tool", CountingHandler(), category="retrieval"),
        policies=POLICIES,
        settings={"budgets": {"text_retrievals": 1}},
        observers=[Watcher()],  # type: ignore[list-item]
    )
    session = work.session()

    async def main() -> None:
        await work.call(session, "tool", "{}", "call_000001")
        await work.call(session, "tool", "{}", "call_000002")

    run(main())
    assert set(seen[0].values()) == {"pass"}
    assert seen[1] == {
        "duplicates": "pass",
        "bans": "pass",
        "budgets": "refused",
        "loops": "not reached",
        "validation": "not reached",
        "recovery": "not reached",
        "latency": "not reached",
    }


# faults of handlers, policies and observers


@pytest.mark.parametrize(
    "returned",
    [
        ok({1, 2}),
        ok({"a": object()}),
        ok({1: "int key"}),
        ok(2**70),
        ok("\ud800"),
        ok({}).with_meta(a=object()),
        fail(ErrorType.PERMANENT, "There is no file \udcff."),
        fail(ErrorType.PERMANENT, "No.", details={"a": object()}),
    ],
    ids=["set", "object", "int key", "long", "surrogate", "meta", "message", "details"],
)
def test_an_answer_that_is_not_json_is_a_failure_of_the_tool(returned: ToolResponse) -> None:
    # A few milliseconds, because a repetition waits that long for a first call that never settles.
    work = make_runtime(CountingHandler(returned), sideEffects="writes", idempotent=False, timeoutMs=50)
    session = work.session()

    async def main() -> list[bytes]:
        return [(await work.call(session, "tool", "{}", "call_123456")).wire for _ in range(2)]

    first, second = run(main())
    assert first == second
    assert json.loads(first)["error"]["type"] == "INTERNAL"
    assert json.loads(first)["error"]["message"] == "The tool returned data that cannot be encoded as JSON."
    assert json.loads(first)["error"]["partialSideEffects"] is True


def test_a_tool_cannot_set_the_metadata_of_its_envelope() -> None:
    claimed = {"toolId": "another", "registryVersion": "9.9.9", "duration": -1, "cached": True}
    work = make_runtime(CountingHandler(ok({}).with_meta(**claimed)))
    # Strictly, because parsers disagree about duplicate names.
    meta = strict_json.loads(run(work.call(work.session(), "tool")).text)["meta"]
    assert (meta["toolId"], meta["cached"]) == ("tool", True)
    assert meta["registryVersion"] != "9.9.9"
    assert meta["duration"] >= 0


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), float("-inf")])
def test_nan_reaches_the_model_as_null(value: float | None) -> None:
    work = make_runtime(CountingHandler(ok({"score": value, "scores": [0.5, value]})))
    data = json.loads(run(work.call(work.session(), "tool")).wire)["data"]
    assert data == {"score": None, "scores": [0.5, None]}


def test_a_handler_that_calls_exit_ends_only_its_call() -> None:
    async def handler(args: Any, ctx: Any) -> ToolResponse:
        raise SystemExit(3)

    work = make_runtime(handler)
    assert kind(run(work.call(work.session(), "tool"))) == "INTERNAL"


def test_an_error_type_may_be_given_by_name() -> None:
    work = make_runtime(CountingHandler(fail("CONFLICT", "Taken.")))  # type: ignore[arg-type]
    assert kind(run(work.call(work.session(), "tool"))) == "CONFLICT"


class RaisingPolicy:
    def __init__(self, how: str) -> None:
        self.how = how

    def applies_to(self, tool: Any, session: Any) -> bool:
        if self.how == "concerns raises":
            raise RuntimeError("secret")
        return True

    async def apply(self, call: Any, proceed: Any) -> Any:
        if self.how == "raises":
            raise RuntimeError("secret")
        answer = await proceed(call)
        return {"returns nothing": None, "returns a dict": {"ok": True}}.get(self.how, answer)


@pytest.mark.parametrize("how", ["raises", "concerns raises", "returns nothing", "returns a dict"])
@pytest.mark.parametrize("stage", list(Stage))
def test_a_policy_that_raises_gives_an_answer_and_runs_nothing_twice(how: str, stage: Stage) -> None:
    handler = CountingHandler()
    offer = PolicyOffer("broken", stage, 99, lambda settings, services: RaisingPolicy(how))
    tool = make_tool("tool", handler, sideEffects="writes", idempotent=False)
    work = TestRuntime(tool, policies=[*POLICIES, offer])
    session = work.session()

    async def main() -> list[Any]:
        return [await work.call(session, "tool", "{}", "call_123456") for _ in range(2)]

    for answer in run(main()):
        assert kind(answer) == "INTERNAL"
        assert "secret" not in answer.wire.decode()
    assert len(handler.runs) <= 1


def test_an_approved_call_is_not_rate_limited_again() -> None:
    handler = CountingHandler()
    work = make_confirmed_runtime(handler, rateLimit={"calls": 1, "windowMs": 60_000})
    session = work.session("voice")

    async def main() -> str:
        await work.call(session, "tool")
        return kind(await work.resolve(session, token_of(work)))

    assert run(main()) == "ok"


def test_a_preview_shows_terminal_control_characters() -> None:
    work = make_confirmed_runtime(CountingHandler())
    answer = run(work.call(work.session(), "tool", json.dumps({"q": "\x1b[31mred\u202eabc"})))
    preview = failure(answer)["confirmation_request"]["preview"]
    assert preview == "Say \\u001b[31mred\\u202eabc?"


def test_a_failing_observer_does_not_affect_the_answer() -> None:
    class Broken:
        def call_finished(self, call: Any, response: Any) -> None:
            raise RuntimeError

    work = TestRuntime(make_tool("tool", CountingHandler()), observers=[Broken()])  # type: ignore[list-item]
    assert kind(run(work.call(work.session(), "tool"))) == "ok"


def test_a_call_of_an_unknown_tool_is_recorded() -> None:
    seen: list[str] = []

    class Watcher:
        def call_finished(self, call: Any, response: Any) -> None:
            seen.append(call.tool.id)

    work = TestRuntime(make_tool("tool", CountingHandler()), observers=[Watcher()])  # type: ignore[list-item]
    answer = run(work.call(work.session(), "tol", "{}", "call_1"))
    assert failure(answer)["suggestion"] == "Did you mean 'tool'?"
    assert json.loads(answer.wire)["meta"]["toolId"] == "tol"
    assert seen == ["tol"]
