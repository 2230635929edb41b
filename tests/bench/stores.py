"""Cost of the stores: claims, durable writes, keys by prefix, and memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.report import Report, RunOptions, Table
from bench.subprocesses import run_module

# The unit is part of the name of a row.
STORES = Table("stores", "Stores", "what", {"figure": ",.1f"})
TABLES = (STORES,)


def run(report: Report, _: RunOptions) -> None:
    with tempfile.TemporaryDirectory() as name:
        found = run_module("probes.stores", Path(name))
    report.table(
        STORES,
        "Times are CPU times of the process. The figures are medians.",
        {row: (figure,) for row, figure in found.items()},
    )
