"""How long a call takes, held against what the manifest promises."""

from __future__ import annotations

import math
from collections.abc import Iterator

from jackfield_testkit.tool_contract.case import Case


def problems(case: Case, best_of: int) -> Iterator[str]:
    """Whether the quickest of a few runs is still over the tool's latency budget."""
    budget = case.tool.manifest.latency_budget_ms
    quickest = math.inf
    for _ in range(case.tool.runs(best_of)):
        quickest = min(quickest, case.run().seconds * 1000)
        if quickest <= budget:
            return
    yield f"it took {quickest:.0f} ms at best, and latencyBudgetMs is {budget}"
