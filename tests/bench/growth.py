"""How the cost of a call grows with the number of open sessions."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench import kb_tools
from bench.report import Report, RunOptions, Table, rounds_text
from bench.subprocesses import Figures, ratio, run_module

SESSIONS = Table(
    "open-sessions",
    "Scaling",
    "open sessions",
    {"calls in one (1 session = 1)": ".2f", "calls spread over all sessions": ".2f"},
)
TABLES = (SESSIONS,)

COUNTS, COUNTS_FULL = (1, 100, 1_000), (1, 100, 1_000, 10_000)


def run(report: Report, asked: RunOptions) -> None:
    counts = COUNTS_FULL if asked.full else COUNTS
    taken: dict[int, list[Figures]] = {count: [] for count in counts}
    with tempfile.TemporaryDirectory() as name:
        environment = kb_tools.install(Path(name), 1)
        for _ in range(asked.rounds):
            for count in counts:
                sized = {**environment, "BENCH_SESSIONS": str(count)}
                taken[count].append(run_module("probes.many_sessions", Path(name), sized))
    rows = {
        f"{count:,}": [ratio(taken[count], taken[counts[0]], way) for way in ("one", "spread")]
        for count in counts
    }
    caption = f"CPU time of a call, by the number of open sessions; {rounds_text(asked.rounds)}."
    report.table(SESSIONS, caption, rows)
