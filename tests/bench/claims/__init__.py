"""Claim checking on transcripts of assistants that call tools: marks, recognised reports, cost."""

from __future__ import annotations

from typing import cast

from bench.report import Report, RunOptions, Table
from bench.subprocesses import run_module

CLAIMS = Table(
    "claims",
    "Claim checking",
    "transcripts, phrases, part",
    {
        "messages": ".0f",
        "marked": ".0f",
        "after a write": ".0f",
        "of these with a claim, %": ".0f",
        "us per message": ".0f",
    },
)
TABLES = (CLAIMS,)


def run(report: Report, _: RunOptions) -> None:
    rows: dict[str, list[float]] = {}
    for part in ("development", "held-out"):
        rows |= cast("dict[str, list[float]]", run_module("claims", arguments=["--part", part]))
    if not rows:
        report.note(CLAIMS.section, "Left out: the transcripts are not available.")
        return
    report.table(CLAIMS, "Each message is compared with the calls before it.", rows)
