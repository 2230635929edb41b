"""Instructions of one call, counted by valgrind: unlike times, they are the same on a busy machine.

A program runs twice, with few and with many calls. The difference is what the calls need, without the start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench import kb_tools
from bench.governed import CONTESTANTS, GOVERNED, PEER, PLAIN, SECTION, SIZES
from bench.implementations.workload import SIZE_VARIABLE
from bench.report import Report, RunOptions, Table
from bench.subprocesses import ProgramError, installed

COUNTED = (PLAIN, GOVERNED, "unobserved", "openai_agents", "pydantic_ai", PEER)
"""What is counted: a program that takes long to start takes minutes under valgrind."""

INSTRUCTIONS = Table(
    "instructions",
    SECTION,
    "what",
    {
        heading: form
        for size in SIZES.values()
        for heading, form in ((f"{size.name}, thousand", ".1f"), (f"{size.name}, plain = 1", ".2f"))
    },
)
TABLES = (INSTRUCTIONS,)

FEW, MANY = 200, 1200
PATIENCE = 3600


def run(report: Report, _: RunOptions) -> None:
    if shutil.which("valgrind") is None:
        report.note(SECTION, "Instructions left out: valgrind is not installed.")
        return
    present = [each for each in CONTESTANTS if each.module in COUNTED and installed(each.needs)]
    rows: dict[str, list[float]] = {each.name: [] for each in present}
    with tempfile.TemporaryDirectory() as name:
        environment = kb_tools.install(Path(name), 1)
        for size in SIZES:
            sized = {**environment, SIZE_VARIABLE: size}
            counted = {each.module: per_call(each.module, Path(name), sized) for each in present}
            for each in present:
                rows[each.name] += [counted[each.module] / 1000, counted[each.module] / counted[PLAIN]]
    report.table(INSTRUCTIONS, f"Counted by valgrind, means of {MANY - FEW:,} calls.", rows)


def per_call(module: str, folder: Path, environment: Mapping[str, str]) -> float:
    """Return how many instructions the process executes for a call."""
    few, many = (_executed(module, folder, environment, calls) for calls in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def _executed(module: str, folder: Path, environment: Mapping[str, str], calls: int) -> int:
    # Without random hashes, dictionaries are laid out the same way in both runs.
    fixed = {"PYTHONHASHSEED": "0", "BENCH_CALLS": str(calls)}
    ran = subprocess.run(
        [
            "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
            sys.executable, "-m", f"bench.implementations.{module}",
        ],
        cwd=folder, env={**os.environ, **environment, **fixed}, check=False,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    counted = re.search(r"Collected : (\d+)", ran.stderr)
    if ran.returncode or counted is None:
        raise ProgramError(f"bench.implementations.{module} failed under valgrind: {ran.stderr[-2000:]}")
    return int(counted[1])
