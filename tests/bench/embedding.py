"""Cost of embedding texts with the local model."""

from __future__ import annotations

from bench.report import Report, RunOptions, Table
from bench.subprocesses import median, run_module

EMBEDDING = Table("embedding", "Embedding", "text", {"CPU, ms": ".1f"})
TABLES = (EMBEDDING,)


def run(report: Report, asked: RunOptions) -> None:
    taken = [run_module("probes.embedding") for _ in range(asked.rounds)]
    if not taken[0]:
        report.note(EMBEDDING.section, "Left out: the local embedding model is not installed.")
        return
    rows = {text: (median(taken, text),) for text in taken[0]}
    report.table(
        EMBEDDING,
        f"One text at a time; medians of {asked.rounds} process{'es' if asked.rounds > 1 else ''}.",
        rows,
    )
