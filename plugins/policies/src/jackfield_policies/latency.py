"""A tool that takes longer than it promised is noted."""

from __future__ import annotations

import logging
import time

from jackfield import ToolResponse
from jackfield.governance import Call, Proceed
from jackfield.offers import PluginSettings, Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_policies.settings import numbers

_log = logging.getLogger(__name__)


class Latency:
    """Holds the time of the handler against the tool's budget."""

    def __init__(self, settings: PluginSettings, services: Services) -> None:  # noqa: ARG002
        numbers("latency", settings, {})

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Every tool."""
        return True

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Measure, and warn when it was late."""
        began = time.perf_counter()
        response = await proceed(call)
        took = (time.perf_counter() - began) * 1000
        budget = call.tool.manifest.latency_budget_ms
        if took > budget:
            call.decide("latency", "late")
            call.meta["late"] = {"tookMs": round(took), "budgetMs": budget}
            _log.warning("%s took %.0f ms of its %d", call.tool.id, took, budget)
        return response
