"""How well and how fast the knowledge base finds: judged questions, large libraries, searching while
loading."""

from __future__ import annotations

from bench.recording import Asked, Report
from bench.retrieval import quality, speed

TABLES = (quality.QUALITY, quality.HELD_OUT, quality.WORTH, speed.SPEED, speed.LIBRARY)


def run(report: Report, asked: Asked) -> None:
    """Quality once, because it does not vary; speed in as many rounds, at each size."""
    quality.run(report, asked)
    speed.run(report, asked)
