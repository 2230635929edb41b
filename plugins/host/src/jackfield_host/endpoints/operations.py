"""`/audit`, `/calls`, `/stats` and `/metrics`: operators monitor the host and settle calls in doubt.

Audit and metrics come from observers, which are recognised by their methods, not by their distribution.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sized
from typing import Any, Protocol, runtime_checkable

import orjson
from jackfield.call_states import state_of
from jackfield.ledger import DoubtfulCall
from jackfield.orchestrator import Observer
from jackfield.registry.registry import Registry
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoint import (
    LIMIT,
    OPERATORS_ONLY,
    Endpoint,
    EndpointParameter,
    RequestContext,
    ResponseForm,
)
from jackfield_host.errors import HttpError

_log = logging.getLogger(__name__)

SAMPLE_SECONDS = 5.0
"""The interval between two samples of the totals."""

MAX_SAMPLES = 360
"""The number of samples that are kept: half an hour."""

PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_NOT_REFUSALS = ("loops", "validation")
"""Loops are counted separately, and invalid arguments are not rejected by a policy."""

_INSTALL = "Install jackfield-observability, run `jackfield build`, and restart the host."

_INVALID_QUERY = {400: "The query is invalid; the message says where."}

Metrics = Mapping[str, list[dict[str, Any]]]
"""The values of each metric, by its name."""


@runtime_checkable
class MetricsObserver(Protocol):
    """An observer that collects metrics, such as `metrics` of jackfield-observability."""

    def snapshot(self) -> dict[str, Any]:
        """Return every metric by its name under `metrics`: a list of values, each with its labels."""


class AuditPage(Protocol):
    """Lines of the audit log, newest first."""

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines that match."""

    @property
    def complete(self) -> bool:
        """True if there are no older matching lines."""


@runtime_checkable
class AuditObserver(Protocol):
    """An observer that writes an audit log, such as `audit` of jackfield-observability."""

    def tail(
        self, limit: int, *, tool: str | None = None, session: str | None = None, ok: bool | None = None
    ) -> AuditPage:
        """Return the latest lines; may read files."""


def find_metrics_observer(observers: Iterable[Observer]) -> MetricsObserver | None:
    """Return the observer that collects metrics, if there is one."""
    return next((each for each in observers if isinstance(each, MetricsObserver)), None)


def find_audit_observer(observers: Iterable[Observer]) -> AuditObserver | None:
    """Return the observer that writes an audit log, if there is one."""
    return next((each for each in observers if isinstance(each, AuditObserver)), None)


class MetricsHistory:
    """Samples the totals at regular intervals, for charts."""

    def __init__(self, observer: MetricsObserver | None, sessions: Sized) -> None:
        """`sessions` are the live sessions of this host."""
        self.observer = observer
        self._sessions = sessions
        self.samples: deque[dict[str, float]] = deque(maxlen=MAX_SAMPLES)

    @property
    def totals(self) -> dict[str, float]:
        """The totals of the last sample; empty before the first one."""
        if not self.samples:
            return {}
        return {name: value for name, value in self.samples[-1].items() if name not in ("at", "open")}

    @property
    def calls_per_second(self) -> float | None:
        """The calls per second between the last two samples; None if there are fewer than two."""
        if len(self.samples) < 2:
            return None
        before, last = self.samples[-2], self.samples[-1]
        seconds = last["at"] - before["at"]
        return round((last["calls"] - before["calls"]) / seconds, 3) if seconds > 0 else None

    async def run(self) -> None:
        """Take samples until cancelled."""
        while self.observer is not None:
            try:
                # In a thread, because computing the percentiles of all tools takes a few milliseconds.
                metrics = await asyncio.to_thread(read_metrics, self.observer)
                sample = {
                    "at": round(time.time(), 3),
                    "open": len(self._sessions),
                    **metric_totals(metrics),
                }
            except Exception:  # noqa: BLE001 - an observer is third-party code; the host continues without it
                _log.exception("cannot read the metrics; there will be no charts")
                return
            self.samples.append(sample)
            await asyncio.sleep(SAMPLE_SECONDS)


def read_metrics(observer: MetricsObserver) -> Metrics:
    """Return every metric of an observer; third-party observers may lack some."""
    metrics: Metrics = observer.snapshot()["metrics"]
    return metrics


def metric_totals(metrics: Metrics) -> dict[str, float]:
    """Return the totals that charts show; none of them ever decreases."""
    refused = (
        each["value"]
        for each in metrics.get("jackfield_policy_decisions", ())
        if each["decision"] == "refused" and each["policy"] not in _NOT_REFUSALS
    )
    return {
        "calls": _sum(metrics, "jackfield_calls"),
        # A call that waits for confirmation has not failed.
        "errors": _sum(metrics, "jackfield_errors") - _sum(metrics, "jackfield_confirmation_requests"),
        "refusals": float(sum(refused)),
        "loops": _sum(metrics, "jackfield_loops"),
        "sessions": _sum(metrics, "jackfield_sessions"),
        "turns": _sum(metrics, "jackfield_turns"),
        "tokens": _sum(metrics, "jackfield_response_tokens"),
    }


def tool_metrics(metrics: Metrics, registry: Registry) -> list[dict[str, Any]]:
    """Return the metrics of each tool that was called, the most called first.

    Variants and experiments of a tool have their own entries.
    """
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for each in metrics.get("jackfield_call_duration_seconds", ()):
        tool = registry.get(each["tool"])
        found[_labels(each)] = {
            "tool": each["tool"],
            **{name: each[name] for name in ("variant", "experiment") if name in each},
            "calls": each["count"],
            "errors": {},
            "late": 0,
            "tokens": 0,
            "budgetMs": tool.manifest.latency_budget_ms if tool else None,
            **{name: round(each[name] * 1000, 3) for name in ("p50", "p95", "p99") if name in each},
        }
    for each in metrics.get("jackfield_errors", ()):
        found[_labels(each)]["errors"][each["type"]] = each["value"]
    for name, metric in (("late", "jackfield_late_calls"), ("tokens", "jackfield_response_tokens")):
        for each in metrics.get(metric, ()):
            found[_labels(each)][name] = each["value"]
    return sorted(found.values(), key=lambda tool: (-tool["calls"], *_labels(tool)))


def _labels(values: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(values.get(name, "")) for name in ("tool", "variant", "experiment"))


def policy_decisions(metrics: Metrics) -> list[dict[str, Any]]:
    """Return how often each policy intervened."""
    return [
        {"policy": each["policy"], "decision": each["decision"], "count": each["value"]}
        for each in metrics.get("jackfield_policy_decisions", ())
    ]


def _sum(metrics: Metrics, name: str) -> float:
    return float(sum(each["value"] for each in metrics.get(name, ())))


async def stats(context: RequestContext) -> Response:
    """Return the statistics of this process, with their history."""
    context.require_operator()
    history, sessions = context.host.metrics_history, context.sessions
    if history.observer is None:
        raise _no_metrics()
    metrics = await asyncio.to_thread(read_metrics, history.observer)
    return JSONResponse(
        {
            "host": sessions.runtime.hosts.name,
            "uptime": context.host.uptime,
            "open": len(sessions.live),
            "totals": metric_totals(metrics),
            "tools": tool_metrics(metrics, sessions.runtime.registry),
            "decisions": policy_decisions(metrics),
            "sampleSeconds": SAMPLE_SECONDS,
            "samples": list(history.samples),
        }
    )


async def prometheus(context: RequestContext) -> Response:
    """Return the metrics in the Prometheus text format."""
    context.require_operator()
    for observer in context.sessions.runtime.orchestrator.observers:
        if write := getattr(observer, "prometheus", None):
            return Response(write(), media_type=PROMETHEUS_TYPE)
    raise _no_metrics()


def _no_metrics() -> HttpError:
    return HttpError(404, "no_metrics", "This host collects no metrics.", suggestion=_INSTALL)


async def audit(context: RequestContext) -> Response:
    """Return the latest lines of the audit log."""
    context.require_operator()
    limit = context.query_limit()
    ok = context.query_choice("ok", ("true", "false"))
    query = context.request.query_params
    observer = find_audit_observer(context.sessions.runtime.orchestrator.observers)
    if observer is None:
        raise HttpError(404, "no_audit", "This host writes no audit log.", suggestion=_INSTALL)
    page = await asyncio.to_thread(
        observer.tail,
        limit,
        tool=query.get("tool") or None,
        session=query.get("session") or None,
        ok=None if ok is None else ok == "true",
    )
    host = context.sessions.runtime.hosts.name
    return JSONResponse({"host": host, "complete": page.complete, "lines": page.lines})


async def calls(context: RequestContext) -> Response:
    """List the calls in doubt of every host that uses this store."""
    context.require_operator()
    limit = context.query_limit()
    found = sorted(
        await context.sessions.runtime.ledger.in_doubt(), key=lambda each: (each.claimed_at, each.key)
    )
    return JSONResponse(
        {"complete": len(found) <= limit, "calls": [_call_in_doubt(each) for each in found[:limit]]}
    )


def _call_in_doubt(call: DoubtfulCall) -> dict[str, Any]:
    return {
        "key": call.key,
        "tool": call.tool_id,
        "session": call.session_id,
        "user": call.user,
        "callId": call.call_id,
        "arguments": call.arguments,
        "beganAt": call.claimed_at,
    }


async def settle(context: RequestContext) -> Response:
    """Record whether a call in doubt took effect."""
    from jackfield_host.request_models import SettleBody

    context.require_operator()
    body = await context.body(SettleBody)
    wire = await context.sessions.runtime.settle_call(
        body.key, ran=body.ran, by=context.identity.user, data=body.data
    )
    if wire is None:
        raise HttpError(
            404,
            "not_in_doubt",
            "No call in doubt has this key. Another operator may have settled it.",
            suggestion="GET /calls lists the calls in doubt.",
        )
    return JSONResponse({"key": body.key, "state": state_of(wire).value, "envelope": orjson.loads(wire)})


AUDIT = Endpoint(
    "GET",
    "/audit",
    "The latest calls, from the audit log that this host writes.",
    audit,
    parameters=(
        LIMIT,
        EndpointParameter("tool", "query", "Only calls to this tool.", {"type": "string"}),
        EndpointParameter("session", "query", "Only calls in this session, by its id.", {"type": "string"}),
        EndpointParameter("ok", "query", "Only calls that succeeded, or that failed.", {"type": "boolean"}),
    ),
    responses={200: (ResponseForm("Lines of the audit log, the latest first.", "AuditResponse"),)},
    errors={**_INVALID_QUERY, 404: "The `audit` observer is not installed.", **OPERATORS_ONLY},
)

CALLS = Endpoint(
    "GET",
    "/calls",
    "The calls in doubt: their host stopped while they ran, so they may or may not have taken effect.",
    calls,
    parameters=(LIMIT,),
    responses={200: (ResponseForm("The calls in doubt, the oldest first.", "CallsInDoubt"),)},
    errors={**_INVALID_QUERY, **OPERATORS_ONLY},
)

SETTLE = Endpoint(
    "POST",
    "/calls/settle",
    "Record whether a call in doubt took effect. If several operators settle the same call, the "
    "first one wins.",
    settle,
    body="SettleBody",
    responses={200: (ResponseForm("The settled call, with its outcome.", "SettledCall"),)},
    errors={
        400: "The body is invalid; the message says where.",
        404: "No call in doubt has this key; another operator may have settled it.",
        **OPERATORS_ONLY,
    },
)

STATS = Endpoint(
    "GET",
    "/stats",
    "The statistics of this process, with their history of the last half hour.",
    stats,
    responses={200: (ResponseForm("The statistics.", "StatisticsResponse"),)},
    errors={404: "The `metrics` observer is not installed.", **OPERATORS_ONLY},
)

METRICS = Endpoint(
    "GET",
    "/metrics",
    "The metrics of this process, for Prometheus.",
    prometheus,
    responses={200: (ResponseForm("The metrics in the Prometheus text format.", media_type="text/plain"),)},
    errors={404: "The `metrics` observer is not installed.", **OPERATORS_ONLY},
)
