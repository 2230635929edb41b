"""The result of a run as a table, and its place in the documentation."""

from __future__ import annotations

from pathlib import Path

from faults import report

from cluster.chaos import Result

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"

BEGIN, END = "<!-- cluster: begin -->", "<!-- cluster: end -->"
"""The markers of the section that `--write` replaces."""


def table(result: Result) -> str:
    """Return all counts."""
    return report.table(("cluster", ""), result.rows())


def write(result: Result, page: Path = PAGE) -> None:
    """Replace the marked section of a page."""
    report.replace_section(page, BEGIN, END, table(result))
