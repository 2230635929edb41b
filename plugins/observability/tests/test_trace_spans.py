"""Spans that follow the OpenTelemetry conventions, seen by the SDK's own exporter."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from jackfield import ErrorType, fail, ok
from jackfield.confirmation import PendingConfirmation
from jackfield.governance import Call
from jackfield_observability import traces as traces_module
from jackfield_observability.traces import Traces
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode


class Telemetry:
    """Providers that keep their spans and metrics."""

    def __init__(self, *, batched: bool = False) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        processor = BatchSpanProcessor if batched else SimpleSpanProcessor
        self.tracers.add_span_processor(processor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.traces = Traces(
            self.tracers, MeterProvider(metric_readers=[self.reader], shutdown_on_exit=False)
        )

    def spans(self) -> dict[str, ReadableSpan]:
        assert self.traces.drain()
        return {span.name: span for span in self.exporter.get_finished_spans()}


@pytest.fixture
def telemetry() -> Any:
    made = Telemetry()
    yield made
    made.tracers.shutdown()


def test_a_call_is_a_span(telemetry: Telemetry, opened: Callable[..., Any], audited_host: ModuleType) -> None:
    talk = opened(observers=[telemetry.traces])
    before = time.time_ns()
    talk.call(text="hello", call_id="call-1")
    after = time.time_ns()
    (span,) = telemetry.spans().values()

    assert span.name == "execute_tool echo"
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    assert span.parent is None
    assert span.start_time is not None
    assert span.end_time is not None
    # Two clocks are compared here, which drift apart by microseconds.
    assert before - 1_000_000 < span.start_time < span.end_time < after + 1_000_000
    assert span.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.conversation.id": "session-1",
        "jackfield.tool.version": "2.3.4",
        "jackfield.registry.version": audited_host.VERSION,
        "jackfield.session.mode": "text",
        "jackfield.turn": 1,
    }


def test_a_declined_call_is_no_span_because_nothing_ran(
    telemetry: Telemetry, opened: Callable[..., Any]
) -> None:
    talk = opened(observers=[telemetry.traces])
    pending = PendingConfirmation("1", "s", None, "echo", {}, "call-1", "", "Echo?", 0.0, "", {})
    talk.orchestrator.record_declined(talk.session, pending)
    assert telemetry.spans() == {}


def test_a_failure_is_an_error_by_its_type_and_quotes_nothing(
    telemetry: Telemetry, opened: Callable[..., Any], audited_host: ModuleType
) -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> Any:
        return fail(ErrorType.AUTH, f"{args['password']} is wrong")

    opened(audited_host.tool(handler), observers=[telemetry.traces]).call(password="hunter2")
    (span,) = telemetry.spans().values()

    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "AUTH")
    assert span.attributes is not None
    assert span.attributes["error.type"] == "AUTH"
    assert "gen_ai.tool.call.id" not in span.attributes
    assert "hunter2" not in span.to_json()


def test_durations_are_a_histogram_in_seconds(
    telemetry: Telemetry, opened: Callable[..., Any], audited_host: ModuleType
) -> None:
    async def handler(args: dict[str, Any], ctx: Any) -> Any:
        return fail(ErrorType.TRANSIENT, "No.") if args else ok()

    talk = opened(audited_host.tool(handler), observers=[telemetry.traces])
    talk.call()
    talk.call()
    talk.call(no=True)
    telemetry.traces.drain()
    data = telemetry.reader.get_metrics_data()
    assert data is not None
    (metric,) = data.resource_metrics[0].scope_metrics[0].metrics

    assert (metric.name, metric.unit) == ("gen_ai.execute_tool.duration", "s")
    points: dict[Any, Any] = {
        (point.attributes or {}).get("error.type"): point for point in metric.data.data_points
    }
    assert points[None].count == 2
    assert points["TRANSIENT"].count == 1
    assert 0 < points[None].sum < 1
    assert points[None].attributes == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "echo"}


def test_unknown_tools_share_one_series(telemetry: Telemetry, opened: Callable[..., Any]) -> None:
    talk = opened(observers=[telemetry.traces])
    for number in range(5):
        talk.call(f"made_up_{number}", call_id="half of a pair: \ud800")
    spans = telemetry.spans()
    assert set(spans) == {f"execute_tool made_up_{number}" for number in range(5)}
    # Text that is not UTF-8 would make an exporter lose its whole batch.
    assert {str((span.attributes or {})["gen_ai.tool.call.id"]) for span in spans.values()} == {
        "half of a pair: ?"
    }
    data = telemetry.reader.get_metrics_data()
    assert data is not None
    (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
    (point,) = metric.data.data_points
    assert (point.attributes or {})["gen_ai.tool.name"] == "(unknown)"


def test_a_span_belongs_to_the_callers_trace(telemetry: Telemetry, opened: Callable[..., Any]) -> None:
    talk = opened(observers=[telemetry.traces])
    with telemetry.tracers.get_tracer("host").start_as_current_span("request") as request:
        talk.call()
    spans = telemetry.spans()

    parent = spans["execute_tool echo"].parent
    assert parent is not None
    assert parent.span_id == request.get_span_context().span_id


def test_a_call_made_by_a_tool_is_a_child_of_its_span(
    telemetry: Telemetry, opened: Callable[..., Any], audited_host: ModuleType
) -> None:
    def calling(inner: str) -> Any:
        async def handler(args: dict[str, Any], ctx: Any) -> Any:
            await ctx.call_tool(inner, {})
            await ctx.call_tool("made_up", {})
            return await ctx.call_tool(inner, {})

        return handler

    talk = opened(
        audited_host.tool(),
        audited_host.tool(calling("echo"), "middle"),
        audited_host.tool(calling("middle"), "outer"),
        observers=[telemetry.traces],
    )
    talk.call("outer")
    telemetry.traces.drain()
    spans = telemetry.exporter.get_finished_spans()
    by_id = {span.context.span_id: span for span in spans if span.context}

    def lineage(span: ReadableSpan) -> list[str]:
        return [*(lineage(by_id[span.parent.span_id]) if span.parent else ()), span.name.split()[1]]

    assert sorted(map(lineage, spans), key=lambda names: (len(names), names)) == [
        ["outer"],
        ["outer", "made_up"],
        *[["outer", "middle"]] * 2,
        *[["outer", "middle", "echo"]] * 4,
        *[["outer", "middle", "made_up"]] * 2,
    ]
    assert telemetry.traces._begun == {}


def test_the_span_of_a_cancelled_caller_is_discarded(
    telemetry: Telemetry,
    opened: Callable[..., Any],
    audited_host: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traces_module, "MAX_BEGUN", 3)
    talk = opened(observers=[telemetry.traces])
    tool = talk.orchestrator.registry.get("echo")
    for _ in range(10):
        call = Call(tool, talk.session, {}, b"", None)
        call.parent = Call(tool, talk.session, {}, b"", None)
        telemetry.traces.call_finished(call, ok())
    telemetry.traces.drain()

    assert len(telemetry.traces._begun) == 3
    assert len(telemetry.exporter.get_finished_spans()) == 10


def test_closing_flushes_the_exporter(opened: Callable[..., Any]) -> None:
    telemetry = Telemetry(batched=True)
    talk = opened(observers=[telemetry.traces])
    talk.call()
    talk.run(telemetry.traces.close())

    assert len(telemetry.exporter.get_finished_spans()) == 1
    telemetry.tracers.shutdown()


def test_the_span_queue_is_bounded(
    telemetry: Telemetry, opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces_module, "QUEUE_LIMIT", 5)
    talk = opened(observers=[telemetry.traces])
    with telemetry.traces._work_lock:
        for _ in range(8):
            talk.call()
    telemetry.traces.drain()

    assert len(telemetry.exporter.get_finished_spans()) == 5
    assert telemetry.traces.overflowed == 3


def test_without_configured_providers_nothing_happens(opened: Callable[..., Any]) -> None:
    observer = Traces()
    talk = opened(observers=[observer])

    assert talk.call().response.ok
    assert observer.drain()
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
