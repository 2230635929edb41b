"""Quality and speed of the knowledge base: judged questions, large libraries, loads, PostgreSQL."""

from __future__ import annotations

from bench.report import Report, RunOptions
from bench.retrieval import postgres, quality, speed

TABLES = (quality.QUALITY, quality.HELD_OUT, quality.WORTH, speed.SPEED, speed.LIBRARY, *postgres.TABLES)


def run(report: Report, asked: RunOptions) -> None:
    """Measure quality once, because it does not vary, and speed in several rounds at each size."""
    quality.run(report)
    speed.run(report, asked)
    postgres.run(report, asked)
