"""What it costs to import the kernel and to ask the command line for help."""

from __future__ import annotations

import sys

from bench.clock import interleaved, table


def run(rounds: int) -> None:
    python = sys.executable
    times = interleaved(
        {
            "an empty program": [python, "-c", "pass"],
            "`import asyncio`": [python, "-c", "import asyncio"],
            "`import jsonschema`": [python, "-c", "import jsonschema"],
            "`import jackfield`": [python, "-c", "import jackfield"],
            "`jackfield --help`": [python, "-m", "jackfield_cli", "--help"],
        },
        rounds,
    )
    empty = times.pop("an empty program")
    kernel = times["`import jackfield`"] - empty
    print(f"## Start (CPU beyond an empty program, which takes {empty * 1000:.0f} ms)\n")
    rows = [
        (name, f"{(taken - empty) * 1000:.0f}", f"{(taken - empty) / kernel:.2f}")
        for name, taken in times.items()
    ]
    table(("what", "ms", "`import jackfield` = 1"), rows)
