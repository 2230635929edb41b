"""`GET /hosts`: the hosts that share the store, with the figures that each of them reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from jackfield.host_reports import HostReport
from starlette.responses import JSONResponse, Response

from jackfield_host.endpoint import OPERATORS_ONLY, Endpoint, RequestContext, ResponseForm


async def hosts(context: RequestContext) -> Response:
    """Return every host with its last report, and the sums of those that still report."""
    context.require_operator()
    directory, now = context.sessions.runtime.hosts, context.sessions.runtime.store.now()
    reports = await directory.reports()
    return JSONResponse(
        {
            "host": directory.name,
            "hosts": [host_wire(each, now) for each in reports],
            "sums": sums([each for each in reports if not each.is_silent(now)]),
        }
    )


def host_wire(report: HostReport, now: float) -> dict[str, Any]:
    """Return a report as JSON; `silent` marks figures that are out of date."""
    return {
        "id": report.id,
        "name": report.name,
        "address": report.address,
        "version": report.version,
        "registry": report.registry,
        "startedAt": report.started_at,
        "reportedAt": report.reported_at,
        "silent": report.is_silent(now),
        "draining": report.draining,
        "sessions": report.sessions,
        "callsPerSecond": report.calls_per_second,
        "totals": dict(report.totals),
    }


def sums(reports: Iterable[HostReport]) -> dict[str, Any]:
    """Return the sums of several hosts' figures."""
    reports = list(reports)
    totals: Counter[str] = Counter()
    for each in reports:
        totals.update(each.totals)
    rates = [each.calls_per_second for each in reports if each.calls_per_second is not None]
    return {
        "hosts": len(reports),
        "sessions": sum(each.sessions for each in reports),
        "callsPerSecond": round(sum(rates), 3) if rates else None,
        "totals": dict(totals),
    }


HOSTS = Endpoint(
    "GET",
    "/hosts",
    "The hosts that share the store, with the figures that each of them reports, and their sums.",
    hosts,
    responses={200: (ResponseForm("The hosts, by name.", "HostList"),)},
    errors=OPERATORS_ONLY,
)
