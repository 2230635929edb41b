"""What has been counted, as a page shows it: totals, tools, and how the totals have grown."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping, Sized
from typing import Any

from jackfield.registry.registry import Registry

from jackfield_host.operations.watchers import Counting

_log = logging.getLogger(__name__)

SAMPLE_SECONDS = 5.0
"""How often totals are looked at."""

SAMPLES = 360
"""How many looks are remembered: half an hour."""

_NO_REFUSALS = ("loops", "validation")
"""What these refuse is counted by itself, or says nothing about a policy."""

Metrics = Mapping[str, list[dict[str, Any]]]


def metrics_of(counting: Counting) -> Metrics:
    """Every metric by its name; an observer that is not ours may not have all of them."""
    counted: Metrics = counting.snapshot()["metrics"]
    return counted


def totals(counted: Metrics) -> dict[str, float]:
    """What a chart over time shows; all of it only grows."""
    refused = (
        each["value"]
        for each in counted.get("jackfield_policy_decisions", ())
        if each["decision"] == "refused" and each["policy"] not in _NO_REFUSALS
    )
    return {
        "calls": _sum(counted, "jackfield_calls"),
        # A call that waits for its user's word has not failed.
        "errors": _sum(counted, "jackfield_errors") - _sum(counted, "jackfield_confirmation_requests"),
        "refusals": float(sum(refused)),
        "loops": _sum(counted, "jackfield_loops"),
        "sessions": _sum(counted, "jackfield_sessions"),
        "turns": _sum(counted, "jackfield_turns"),
        "tokens": _sum(counted, "jackfield_response_tokens"),
    }


def tools(counted: Metrics, registry: Registry) -> list[dict[str, Any]]:
    """The figures of each tool that was called, those called most at the front."""
    found: dict[str, dict[str, Any]] = {}
    for each in counted.get("jackfield_call_duration_seconds", ()):
        tool = registry.get(each["tool"])
        found[each["tool"]] = {
            "tool": each["tool"],
            "calls": each["count"],
            "errors": {},
            "late": 0,
            "tokens": 0,
            "budgetMs": tool.manifest.latency_budget_ms if tool else None,
            **{name: round(each[name] * 1000, 3) for name in ("p50", "p95", "p99") if name in each},
        }
    for each in counted.get("jackfield_errors", ()):
        found[each["tool"]]["errors"][each["type"]] = each["value"]
    for name, metric in (("late", "jackfield_late_calls"), ("tokens", "jackfield_response_tokens")):
        for each in counted.get(metric, ()):
            found[each["tool"]][name] = each["value"]
    return sorted(found.values(), key=lambda tool: (-tool["calls"], tool["tool"]))


def decisions(counted: Metrics) -> list[dict[str, Any]]:
    """How often each policy did something else than to let pass."""
    return [
        {"policy": each["policy"], "decision": each["decision"], "count": each["value"]}
        for each in counted.get("jackfield_policy_decisions", ())
    ]


class Trend:
    """Looks at the totals now and then, and remembers."""

    def __init__(self, counting: Counting | None, sessions: Sized) -> None:
        """`sessions` are the live sessions of this host."""
        self.counting = counting
        self._sessions = sessions
        self.samples: deque[dict[str, float]] = deque(maxlen=SAMPLES)

    async def watch(self) -> None:
        """Look until cancelled."""
        while self.counting is not None:
            try:
                # In a thread: percentiles of all tools take a few milliseconds to work out.
                counted = await asyncio.to_thread(metrics_of, self.counting)
                now = {"at": round(time.time(), 3), "open": len(self._sessions), **totals(counted)}
            except Exception:  # noqa: BLE001 - an observer is somebody else's code; the host goes on without
                _log.exception("the figures cannot be read; there will be no charts")
                return
            self.samples.append(now)
            await asyncio.sleep(SAMPLE_SECONDS)


def _sum(counted: Metrics, name: str) -> float:
    return float(sum(each["value"] for each in counted.get(name, ())))
