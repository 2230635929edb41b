"""Policies that limit calls, results and time.

`DuplicatePolicy` runs a call that is delivered twice only once, even on another host or after a crash. The
other policies limit rates, budgets, loops, `top_k`, retries and latency.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Coroutine
from time import perf_counter
from typing import Any

from jackfield import ErrorType, Failure, ToolResponse, fail
from jackfield.governance import Call, Proceed, SyncPolicy
from jackfield.ledger import CallLedger, idempotency_key
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.settings import NoSettings

from jackfield_policies.access import subject_key
from jackfield_policies.settings import (
    BudgetsSettings,
    ClampingSettings,
    DuplicatesSettings,
    LoopsSettings,
    RecoverySettings,
)


class DuplicatePolicy:
    """Sets a call's idempotency key before all other policies, and runs each call once."""

    def __init__(self, settings: DuplicatesSettings, services: Services) -> None:
        self._ledger = CallLedger(services.store, settings.remember_seconds, capabilities=services.instances)

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Apply to every call of every tool."""
        return True

    def apply(self, call: Call, proceed: Proceed) -> Coroutine[Any, Any, ToolResponse]:
        """Run the call, or return the result of its first delivery."""
        if call.key:
            return _run_approved(call, proceed)
        call.key = idempotency_key(call)
        return self._ledger.run(call, proceed)


async def _run_approved(call: Call, proceed: Proceed) -> ToolResponse:
    """Run a call that the user approved, which the kernel has already claimed."""
    return await proceed(call)


class RateLimitPolicy:
    """Limits the calls per user in the tool's time window, across all hosts that share the store."""

    def __init__(self, settings: NoSettings, services: Services) -> None:  # noqa: ARG002
        self._store = services.store

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Apply to tools with a rate limit."""
        return tool.manifest.rate_limit is not None

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Let the call pass while the window has room."""
        limit = call.tool.manifest.rate_limit
        if limit is None or call.confirmed:
            # An approved call was counted when it asked for confirmation.
            return await proceed(call)
        window = limit.window_ms / 1000
        counter = f"{subject_key('rate', call.session.user, call.session.id)}/{call.tool.id}"
        count = await self._store.add(counter, 1, window=window)
        if count <= limit.calls:
            return await proceed(call)
        call.end("rate_limits", "refused")
        return fail(
            ErrorType.RATE_LIMIT,
            f"Rate limit reached: {call.tool.id} can be called {_counted(limit.calls, 'time')} "
            f"in {_counted(window, 'second')}.",
            suggestion="Tell the user to wait.",
            details={"retryAfterSeconds": math.ceil(window)},
        )


_log = logging.getLogger(__name__)


class BudgetPolicy(SyncPolicy):
    """Rejects calls over a turn's budget; 0 means no limit. Tool time over budget is only reported."""

    def __init__(self, settings: BudgetsSettings, services: Services) -> None:  # noqa: ARG002
        self._limits = {
            "voice": (settings.voice_calls, settings.voice_retrievals, settings.voice_tool_ms),
            "text": (settings.text_calls, settings.text_retrievals, settings.text_tool_ms),
        }

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:
        """Apply to tools whose calls count towards a limit in the session's mode."""
        calls, retrievals, tool_ms = self._limits[session.mode]
        return bool(calls or tool_ms or (retrievals and tool.retrieves))

    def before(self, call: Call) -> ToolResponse | None:
        """Count the call, or reject it."""
        if call.confirmed:
            # The user approved it, and it was counted when it asked for confirmation.
            return None
        calls, retrievals, _ = self._limits[call.session.mode]
        turn, retrieval = call.turn, call.tool.retrieves
        if calls and turn.calls >= calls:
            return _budget_exceeded(
                call,
                f"Budget reached: a turn in a {call.session.mode} session can make "
                f"{_counted(calls, 'call')}.",
            )
        if retrieval and retrievals and turn.retrievals >= retrievals:
            return _budget_exceeded(
                call,
                f"Budget reached: a turn in a {call.session.mode} session can search "
                f"{_counted(retrievals, 'time')}.",
            )
        turn.calls += 1
        turn.retrievals += retrieval
        return None

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Add to the turn's tool time, and report if it is over budget."""
        if call.confirmed:
            return response
        turn, tool_ms = call.turn, self._limits[call.session.mode][2]
        turn.tool_ms += call.total_handler_seconds * 1000.0
        if tool_ms and turn.tool_ms > tool_ms:
            call.decide("budgets", "over time budget")
            _log.warning(
                "the tools in a turn took %.0f ms, over the budget of %g ms; last tool: %s",
                turn.tool_ms,
                tool_ms,
                call.tool.id,
            )
            call.meta["turnTime"] = {"spentMs": round(turn.tool_ms), "budgetMs": tool_ms}
        return response


def _counted(number: float, noun: str) -> str:
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"


def _budget_exceeded(call: Call, message: str) -> ToolResponse:
    call.end("budgets", "refused")
    return fail(
        ErrorType.BUDGET_EXCEEDED,
        message,
        suggestion="Answer with what you have, or ask the user to continue.",
    )


class LoopPolicy(SyncPolicy):
    """Rejects repeated identical calls in a turn, and repeated empty results of a tool; 0 means never."""

    def __init__(self, settings: LoopsSettings, services: Services) -> None:  # noqa: ARG002
        self._identical = settings.identical_calls or math.inf
        self._empty = settings.empty_results or math.inf

    def before(self, call: Call) -> ToolResponse | None:
        """Let the call pass unless the model repeats it."""
        if call.confirmed:
            return None
        repeated, fingerprint = call.turn.repeated_calls, call.fingerprint
        times = repeated[fingerprint] = repeated.get(fingerprint, 0) + 1
        if times < self._identical:
            return None
        call.end("loops", "refused")
        return _loop_detected(
            f"{call.tool.id} was called {times} times in this turn with the same arguments.",
            "Use the answer you have, or call it with different arguments.",
        )

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Let the result pass unless it is empty again."""
        data, failure, intents, _ = response
        # A tool that changed something need not return data.
        if failure or intents or call.confirmed or not call.tool.reads or not is_empty(data):
            return response
        tool_id, turn = call.tool.id, call.turn
        found_nothing = turn.empty_results.get(tool_id, 0)
        # A call that began before an empty result arrived is not a repetition: it was made at the same time.
        if call.started_at >= turn.empty_at.get(tool_id, 0.0):
            found_nothing += 1
            turn.empty_results[tool_id], turn.empty_at[tool_id] = found_nothing, perf_counter()
        if found_nothing < self._empty:
            return response
        call.decide("loops", "found nothing again")
        return _loop_detected(
            f"{tool_id} found nothing {_counted(found_nothing, 'time')} in this turn; "
            "there may be nothing to find.",
            "Tell the user that nothing was found, or use a different tool.",
        )


def is_empty(data: Any) -> bool:
    """Return whether a result has no data, or only empty lists and counts."""
    if not isinstance(data, dict):
        return data is None or data in ("", [])
    empty = not data
    for value in data.values():
        if isinstance(value, list):
            if value:
                return False
            empty = True
    return empty


def _loop_detected(message: str, suggestion: str) -> ToolResponse:
    return fail(ErrorType.LOOP_DETECTED, message, suggestion=suggestion)


class TopKPolicy(SyncPolicy):
    """Lowers `top_k` in voice sessions before the handler runs, and reports the change."""

    def __init__(self, settings: ClampingSettings, services: Services) -> None:  # noqa: ARG002
        self._top_k = settings.voice_top_k

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:
        """Apply to tools with a `top_k` parameter in voice sessions."""
        return session.mode == "voice" and "top_k" in tool.manifest.parameters.get("properties", {})

    def before(self, call: Call) -> None:
        """Lower `top_k`, then let the call pass."""
        asked = call.args.get("top_k")
        if isinstance(asked, int | float) and asked > self._top_k:
            call.args["top_k"] = self._top_k
            call.decide("clamping", f"top_k {asked} -> {self._top_k}")
            call.meta["clamped"] = {"top_k": {"from": asked, "to": self._top_k}}


class RetryPolicy(SyncPolicy):
    """Retries a failed call once after a pause, but not in voice, where the pause would be silence."""

    def __init__(self, settings: RecoverySettings, services: Services) -> None:  # noqa: ARG002
        self._pause = settings.pause_ms / 1000

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:
        """Apply to idempotent tools in text sessions."""
        return session.mode == "text" and tool.manifest.idempotent

    def retry_after(self, call: Call, failure: Failure) -> float | None:
        """Return the pause if the failure is transient."""
        if failure.type is not ErrorType.TRANSIENT or not failure.retryable:
            return None
        call.decide("recovery", "retried")
        call.meta["retried"] = True
        return self._pause


class LatencyPolicy(SyncPolicy):
    """Compares the handler's time with the tool's latency budget."""

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Warn if the call was late."""
        if call.handler_seconds > call.tool.latency_budget:
            took, budget = call.handler_seconds * 1000, call.tool.manifest.latency_budget_ms
            call.decide("latency", "late")
            call.meta["late"] = {"tookMs": round(took), "budgetMs": budget}
            _log.warning("%s took %.0f ms, over its budget of %d ms", call.tool.id, took, budget)
        return response
