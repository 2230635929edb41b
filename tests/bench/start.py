"""Cost of importing the kernel, of the command line's help, and of starting a host."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.cpu_time import interleaved
from bench.report import Report, RunOptions, Table
from bench.subprocesses import ProgramError

START = Table("start", "Startup", "what", {"ms": ".0f", "`import jackfield` = 1": ".2f"})
TABLES = (START,)

SERVE = "`jackfield serve`, until it is ready"


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
    times[SERVE] = serving(asked.rounds)
    empty = times.pop("an empty program")
    kernel = times["`import jackfield`"] - empty
    rows = {name: ((taken - empty) * 1000, (taken - empty) / kernel) for name, taken in times.items()}
    report.table(START, f"CPU time beyond that of an empty program, which takes {empty * 1000:.0f} ms.", rows)


def serving(rounds: int) -> float:
    """Return the median CPU time of a host with the installed tools until it says its address."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [sys.executable, "-m", "jackfield_cli", "build"], cwd=folder, check=True, capture_output=True
        )
        # The first start creates the store and may compile modules.
        return statistics.median([_served(folder) for _ in range(rounds + 1)][1:])


def _served(folder: Path) -> float:
    with subprocess.Popen(
        [sys.executable, "-m", "jackfield_cli", "serve", "--port", "0", "--provider", "local"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if re.match(r"Open http://", line):
                    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                    return sum(int(each) for each in fields[11:15]) / os.sysconf("SC_CLK_TCK")
        finally:
            process.terminate()
    raise ProgramError("jackfield serve did not start")
