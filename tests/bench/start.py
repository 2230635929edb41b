"""Cost of importing the kernel and of the command line's help."""

from __future__ import annotations

import sys

from bench.cpu_time import interleaved
from bench.report import Report, RunOptions, Table

START = Table("start", "Startup", "what", {"ms": ".0f", "`import jackfield` = 1": ".2f"})
TABLES = (START,)


def run(report: Report, asked: RunOptions) -> None:
    python = sys.executable
    times = interleaved(
        {
            "an empty program": [python, "-c", "pass"],
            "`import asyncio`": [python, "-c", "import asyncio"],
            "`import jsonschema`": [python, "-c", "import jsonschema"],
            "`import jackfield`": [python, "-c", "import jackfield"],
            "`jackfield --help`": [python, "-m", "jackfield_cli", "--help"],
        },
        asked.rounds,
    )
    empty = times.pop("an empty program")
    kernel = times["`import jackfield`"] - empty
    rows = {name: ((taken - empty) * 1000, (taken - empty) / kernel) for name, taken in times.items()}
    report.table(START, f"CPU time beyond an empty program, which takes {empty * 1000:.0f} ms.", rows)
