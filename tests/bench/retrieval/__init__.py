"""How well and how fast the knowledge base finds: judged questions, large libraries, searching while
loading."""

from __future__ import annotations

from bench.retrieval import quality, speed


def run(rounds: int, records: tuple[int, ...] = (100_000,)) -> None:
    """Quality once, because it does not vary; speed in as many rounds, at each of these sizes."""
    quality.run()
    for count in records:
        speed.run(rounds, count)
