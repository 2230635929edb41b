"""A tool that takes longer than it promised is noted."""

from __future__ import annotations

import logging

from jackfield import ToolResponse
from jackfield.governance import Call, Check

_log = logging.getLogger(__name__)


class Latency(Check):
    """Holds the time of the handler against the tool's budget."""

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Warn when it was late."""
        took, budget = call.took * 1000, call.tool.manifest.latency_budget_ms
        if took > budget:
            call.decide("latency", "late")
            call.meta["late"] = {"tookMs": round(took), "budgetMs": budget}
            _log.warning("%s took %.0f ms of its %d", call.tool.id, took, budget)
        return response
