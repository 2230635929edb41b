"""Traces: a span and a measurement for every call, by OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from jackfield.contract.tool import ToolResponse
from jackfield.governance import Call
from opentelemetry import metrics, trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from jackfield_observability.background import QUEUE_LIMIT, BackgroundObserver
from jackfield_observability.metrics import UNKNOWN
from jackfield_observability.redaction import identifier

# The conventions are still in development; these are the names of version 1.37.
OPERATION = "gen_ai.operation.name"
EXECUTE_TOOL = "execute_tool"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
CONVERSATION = "gen_ai.conversation.id"
ERROR_TYPE = "error.type"
DURATION = "gen_ai.execute_tool.duration"
# Attributes without a name in the conventions.
TOOL_VERSION = "jackfield.tool.version"
REGISTRY_VERSION = "jackfield.registry.version"
MODE = "jackfield.session.mode"
TURN = "jackfield.turn"

_BUCKETS = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.08,
    0.16,
    0.32,
    0.64,
    1.28,
    2.56,
    5.12,
    10.24,
    20.48,
    40.96,
    81.92,
)

MAX_BEGUN = 1000
"""The maximum number of unfinished calls whose span is open because of calls that they made."""

_log = logging.getLogger(__name__)
_now = time.perf_counter
_SCOPE = "jackfield"


class FinishedCall(NamedTuple):
    """A finished call: its response, its end, and the caller's context."""

    call: Call
    response: ToolResponse
    at: float
    context: Context


class Traces(BackgroundObserver[FinishedCall]):
    """Creates spans afterwards, in a thread: a sampled span costs more than the call itself."""

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self._tracers = tracer_provider
        self._meters = meter_provider
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
        self._durations = metrics.get_meter(_SCOPE, meter_provider=meter_provider).create_histogram(
            DURATION,
            unit="s",
            description="Time from a tool call's arrival to its answer.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self._begun: dict[Call, Span] = {}
        super().__init__("traces")

    def call_finished(self, call: Call, response: ToolResponse) -> None:
        """Queue a call with the caller's context; runs on the call path, so nothing else happens here."""
        waiting = self.waiting
        if len(waiting) < QUEUE_LIMIT:
            waiting.append(FinishedCall(call, response, _now(), get_current()))
        else:
            self.overflowed += 1

    def receive(self, items: Sequence[FinishedCall]) -> None:
        """Create the spans of calls and record measurements."""
        for item in items:
            if item.call.declined:
                continue  # Nothing ran, so there is nothing to measure.
            try:
                self._span(item)
            except Exception:  # noqa: BLE001 - third-party exporter or sampler; the next call may work
                _log.exception("traces: no span could be created for a call to %s", item.call.tool.id)

    def _span(self, ended: FinishedCall) -> None:
        call, response, at, context = ended
        span = self._begin(call, context)
        del self._begun[call]
        # A span for every name, but no metric series for unknown tools.
        measured: dict[str, Any] = {
            OPERATION: EXECUTE_TOOL,
            TOOL_NAME: call.tool.id if call.tool.known else UNKNOWN,
        }
        if response.failure is not None:
            # Without the message, which may quote the arguments.
            kind = str(response.failure.type)
            span.set_status(Status(StatusCode.ERROR, kind))
            span.set_attribute(ERROR_TYPE, kind)
            measured[ERROR_TYPE] = kind
        span.end(end_time=_wall_clock(at))
        self._durations.record(at - call.started_at, measured, trace.set_span_in_context(span, context))

    def flush(self) -> None:
        """Discard spans of calls that never ended because their caller was cancelled."""
        while len(self._begun) > MAX_BEGUN:
            del self._begun[next(iter(self._begun))]

    def reset_after_fork(self) -> None:
        """Discard open spans, which belong to the parent process."""
        self._begun.clear()

    def _begin(self, call: Call, context: Context) -> Span:
        """Return a call's span; a parent's span is created when the first of its calls has ended."""
        span = self._begun.get(call)
        if span is None:
            if call.parent is not None:
                context = trace.set_span_in_context(self._begin(call.parent, context), context)
            span = self._begun[call] = self._tracer.start_span(
                f"{EXECUTE_TOOL} {call.tool.id}",
                context,
                SpanKind.INTERNAL,
                _attributes(call),
                start_time=_wall_clock(call.started_at),
            )
        return span

    def _end(self) -> None:
        super()._end()
        for provider in (
            self._tracers or trace.get_tracer_provider(),
            self._meters or metrics.get_meter_provider(),
        ):
            # Only the SDK's providers buffer spans.
            if flush := getattr(provider, "force_flush", None):
                flush()


def _attributes(call: Call) -> dict[str, Any]:
    attributes = {
        OPERATION: EXECUTE_TOOL,
        TOOL_NAME: call.tool.id,
        TOOL_TYPE: "function",
        CONVERSATION: call.session.id,
        TOOL_VERSION: call.tool.manifest.version,
        REGISTRY_VERSION: call.tool.registry_version,
        MODE: call.session.mode,
        TURN: call.turn.number,
    }
    if call.call_id is not None:
        attributes[TOOL_CALL_ID] = identifier(call.call_id)
    return attributes


def _wall_clock(counter: float) -> int:
    """Convert a value of the performance counter to nanoseconds since the epoch."""
    return time.time_ns() - round((_now() - counter) * 1e9)
