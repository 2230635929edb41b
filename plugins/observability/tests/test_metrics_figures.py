"""The figures of the metrics, and their warnings."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Callable
from types import ModuleType
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield import ErrorType, ToolResponse, fail, ok
from jackfield.governance import Call
from jackfield.offers import Stage
from jackfield.session.session import Session, State
from jackfield_observability import metrics as metrics_module
from jackfield_observability.metrics import CONTENT_TYPE, WINDOW, Metrics, percentiles
from jackfield_observability.settings import MetricsSettings
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.parser import text_string_to_metric_families


def scraped(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Return every sample by name and labels, as a Prometheus server would read it."""
    return {
        (sample.name, *(f"{key}={value}" for key, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.prometheus())
        for sample in family.samples
    }


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=300))
def test_percentiles_are_those_of_the_standard_library(values: list[float]) -> None:
    cuts = statistics.quantiles(values, n=100, method="inclusive")

    assert percentiles(values) == pytest.approx((cuts[49], cuts[94], cuts[98]))


def test_percentiles_of_one_value_and_of_none() -> None:
    assert percentiles([7.0]) == (7.0, 7.0, 7.0)
    assert percentiles([]) is None


def test_percentiles_are_over_the_last_thousand(audited_host: ModuleType) -> None:
    metrics, tool, session = Metrics(), audited_host.tool(), Session("text", "1")
    for size in range(2500):
        call = Call(tool, session, {}, b"", None)
        call.finished_at, call.text = call.started_at + size / 1000, "x" * size
        metrics.call_finished(call, ok())
    figures = metrics.tools[tool.id]
    sizes = figures.size_percentiles()
    durations = figures.duration_percentiles()

    assert WINDOW == 1000
    assert sizes is not None
    assert durations is not None
    cuts = statistics.quantiles(range(1500, 2500), n=100, method="inclusive")
    assert sizes == pytest.approx((cuts[49], cuts[94], cuts[98]))
    assert durations.p50 == pytest.approx(cuts[49] / 1000)
    assert (figures.calls, figures.characters) == (2500, sum(range(2500)))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(MetricsSettings(context_limit_tokens=1000))


async def _varied(args: dict[str, Any], ctx: Any) -> Any:
    if args.get("fail"):
        return fail(ErrorType(args["fail"]), "As you wish.")
    return ok("x" * args.get("size", 0))


@pytest.fixture
def talk(opened: Callable[..., Any], audited_host: ModuleType, metrics: Metrics) -> Any:
    return opened(audited_host.tool(_varied, "varied"), audited_host.tool(), observers=[metrics])


def test_calls_errors_and_sizes_are_counted_by_tool(talk: Any, metrics: Metrics) -> None:
    sizes = [len(talk.call("varied", size=size).wire.decode()) for size in (10, 20, 30)]
    sizes.append(len(talk.call("varied", fail="TRANSIENT").wire))
    talk.call("varied", fail="AUTH")
    echoed = talk.call(text="日本語")
    samples = scraped(metrics)

    assert samples["jackfield_calls_total", "tool=varied"] == 5
    assert samples["jackfield_calls_total", "tool=echo"] == 1
    assert samples["jackfield_errors_total", "tool=varied", "type=TRANSIENT"] == 1
    assert samples["jackfield_errors_total", "tool=varied", "type=AUTH"] == 1
    assert samples["jackfield_response_characters_count", "tool=varied"] == 5
    assert samples["jackfield_response_characters", "quantile=0.5", "tool=echo"] == len(echoed.wire.decode())
    assert samples["jackfield_response_tokens_total", "tool=echo"] == len(echoed.wire.decode()) // 4
    assert 0 < samples["jackfield_call_duration_seconds", "quantile=0.99", "tool=varied"] < 1
    assert samples["jackfield_late_calls_total", "tool=varied"] == 0


def test_a_call_over_its_tools_budget_is_late(
    opened: Callable[..., Any], audited_host: ModuleType, metrics: Metrics
) -> None:
    opened(audited_host.tool(latency_budget_ms=0), observers=[metrics]).call()

    assert scraped(metrics)["jackfield_late_calls_total", "tool=echo"] == 1


def test_loops_budgets_and_confirmations_are_counted_from_their_failures(talk: Any, metrics: Metrics) -> None:
    for kind, times in [("LOOP_DETECTED", 1), ("BUDGET_EXCEEDED", 2), ("CONFIRMATION_REQUIRED", 3)]:
        for _ in range(times):
            talk.call("varied", fail=kind)
    samples = scraped(metrics)

    assert samples["jackfield_loops_total",] == 1
    assert samples["jackfield_budget_refusals_total",] == 2
    assert samples["jackfield_confirmation_requests_total",] == 3


class Decides:
    def applies_to(self, tool: Any, session: Any) -> bool:
        return True

    async def apply(self, call: Any, proceed: Any) -> ToolResponse:
        call.decide("duplicates", call.args.get("decision", "replayed"))
        call.confirmed = True
        return await proceed(call)  # type: ignore[no-any-return]


def test_decisions_are_counted_without_their_numbers(
    opened: Callable[..., Any], metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_module, "MAX_DECISIONS", 4)
    talk = opened(observers=[metrics], policies=[("duplicates", Stage.ADMIT, Decides())])
    talk.call()
    for number in range(6):
        talk.call(decision=f"top_k {number} -> 3")
    samples = scraped(metrics)

    assert samples["jackfield_duplicates_total",] == 1
    assert samples["jackfield_confirmed_calls_total",] == 7
    labels = ("jackfield_policy_decisions_total", "policy=duplicates")
    assert samples[labels[0], "decision=replayed", labels[1]] == 1
    assert samples[labels[0], "decision=top_k N -> N", labels[1]] == 3
    assert samples[labels[0], "decision=other", labels[1]] == 3


def test_sessions_turns_and_initial_tokens_are_counted(metrics: Metrics) -> None:
    voice, chat = Session("voice", "1"), Session("text", "1")
    metrics.session_opened(voice, prompt_tokens=100, declaration_tokens=50)
    metrics.session_opened(chat, prompt_tokens=300, declaration_tokens=70)
    metrics.turn_began(chat)
    metrics.session_ended(voice)
    metrics.session_ended(voice)
    samples = scraped(metrics)

    assert samples["jackfield_sessions_total", "mode=voice"] == 1
    assert samples["jackfield_sessions_total", "mode=text"] == 1
    assert samples["jackfield_turns_total", "mode=text"] == 1
    assert samples["jackfield_open_sessions",] == 1
    assert samples["jackfield_prompt_tokens", "quantile=0.5"] == 200
    assert samples["jackfield_prompt_tokens_sum",] == 400
    assert samples["jackfield_declaration_tokens_count",] == 2
    assert samples["jackfield_largest_context_tokens",] == 370


def test_a_write_after_its_session_does_not_reopen_it(talk: Any, metrics: Metrics) -> None:
    metrics.session_opened(talk.session, prompt_tokens=1, declaration_tokens=1)
    talk.session.transition(State.TERMINATED)
    metrics.session_ended(talk.session)
    talk.call(text="recorded all the same")

    samples = scraped(metrics)
    assert samples["jackfield_calls_total", "tool=echo"] == 1
    assert samples["jackfield_open_sessions",] == 0


def test_large_responses_are_logged_once(
    talk: Any, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(50):
        talk.call("varied", size=2000)
        talk.call(text="short")

    assert caplog.text.count("tool varied: P95 of its last 20 responses is ") == 1
    assert "tool echo" not in caplog.text
    assert scraped(metrics)["jackfield_response_size_warnings_total", "tool=varied"] == 1


def test_a_few_large_responses_among_many_are_no_warning(talk: Any, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(300):
        talk.call("varied", size=2000 if number % 25 == 24 else 100)

    assert "P95" not in caplog.text


def test_responses_that_become_large_are_logged(
    talk: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_module, "_CHECK_SECONDS", 0.0)
    for _ in range(100):
        talk.call("varied", size=100)
    for _ in range(5):
        talk.call("varied", size=2000)
    assert "P95" not in caplog.text
    talk.call("varied", size=2000)

    assert "tool varied: P95 of its last 106 responses is " in caplog.text


def test_a_context_near_its_limit_is_logged_once_per_session(
    talk: Any, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    metrics.session_opened(talk.session, prompt_tokens=400, declaration_tokens=100)
    talk.call("varied", size=600)
    assert "tokens of context" not in caplog.text
    talk.call("varied", size=600)
    talk.call("varied", size=600)

    assert caplog.text.count("session session-1: about ") == 1
    assert "of 1000 tokens of context are used" in caplog.text
    assert scraped(metrics)["jackfield_context_warnings_total",] == 1


def test_a_session_that_starts_near_the_limit_is_logged_at_once(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    metrics.session_opened(Session("text", "1"), prompt_tokens=700, declaration_tokens=100)

    assert "about 800 of 1000 tokens" in caplog.text


def test_sessions_without_an_end_are_evicted(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "MAX_SESSIONS", 10)
    for _ in range(25):
        metrics.session_opened(Session("text", "1"), prompt_tokens=1, declaration_tokens=1)

    assert metrics.open_sessions == 10


def test_json_and_prometheus_agree(talk: Any, metrics: Metrics) -> None:
    metrics.session_opened(talk.session, prompt_tokens=400, declaration_tokens=100)
    metrics.turn_began(talk.session)
    for number in range(30):
        talk.call("varied", size=number)
        talk.call("varied", fail="PERMANENT")
    shown = orjson.loads(orjson.dumps(metrics.snapshot()))
    samples = scraped(metrics)

    assert shown["window"] == 1000
    told = 0
    for name, values in shown["metrics"].items():
        for value in values:
            labels = sorted(f"{key}={text}" for key, text in value.items() if isinstance(text, str))
            if "value" in value:
                key = next(key for key in ((f"{name}_total", *labels), (name, *labels)) if key in samples)
                assert samples[key] == value["value"]
                told += 1
            else:
                for figure, quantile in (("p50", "0.5"), ("p95", "0.95"), ("p99", "0.99")):
                    assert samples[name, *sorted([*labels, f"quantile={quantile}"])] == value[figure]
                assert samples[f"{name}_count", *labels] == value["count"]
                assert samples[f"{name}_sum", *labels] == pytest.approx(value["sum"])
                told += 5
    assert told == len(samples)


def test_an_empty_host_can_be_scraped(metrics: Metrics) -> None:
    assert scraped(metrics)["jackfield_open_sessions",] == 0
    assert metrics.snapshot()["metrics"]["jackfield_calls"] == []
    assert CONTENT_TYPE.split(";")[0] == CONTENT_TYPE_LATEST.split(";")[0]


def test_calls_that_break_returns_are_counted_by_tool(
    opened: Callable[..., Any], audited_host: ModuleType
) -> None:
    metrics = Metrics()
    strict = audited_host.tool(tool_id="strict", returns={"type": "object", "maxProperties": 0})
    talk = opened(strict, audited_host.tool(), observers=[metrics])
    for name in ("strict", "strict", "echo"):
        talk.call(name, text="x")
    talk.call("strict")

    assert metrics.snapshot()["metrics"]["jackfield_returns_violations"] == [
        {"tool": "echo", "value": 0},
        {"tool": "strict", "value": 2},
    ]
    assert scraped(metrics)["jackfield_returns_violations_total", "tool=strict"] == 2
