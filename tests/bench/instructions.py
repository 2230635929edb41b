"""Instructions of one call, counted by valgrind: unlike times, they are the same on a busy machine.

Valgrind counts only while the calls run: a program that is counted from the start takes minutes to import.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

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

CALLS = 1000
PATIENCE = 1200


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
    report.table(INSTRUCTIONS, f"Counted by valgrind, means of {CALLS:,} calls.", rows)


def per_call(module: str, folder: Path, environment: Mapping[str, str]) -> float:
    """Return how many instructions the process executes for a call."""
    with tempfile.TemporaryFile("w+") as errors, _started(module, folder, environment, errors) as program:
        too_late = threading.Timer(PATIENCE, program.kill)
        too_late.start()
        try:
            # The program prints a line before and after the calls, and waits for one each time.
            for counting in ("on", "off"):
                if not program.stdout.readline():  # type: ignore[union-attr]
                    break
                subprocess.run(
                    ["callgrind_control", "--instr=" + counting, str(program.pid)],
                    check=True,
                    capture_output=True,
                )
                print(file=program.stdin, flush=True)
            ended = program.wait()
        finally:
            too_late.cancel()
        errors.seek(0)
        printed = errors.read()
    counted = re.search(r"Collected : (\d+)", printed)
    if ended or counted is None:
        raise ProgramError(f"bench.implementations.{module} failed under valgrind: {printed[-2000:]}")
    return int(counted[1]) / CALLS


def _started(
    module: str, folder: Path, environment: Mapping[str, str], errors: IO[str]
) -> subprocess.Popen[str]:
    # Without random hashes, dictionaries are laid out the same way in every run.
    fixed = {"PYTHONHASHSEED": "0", "BENCH_CALLS": str(CALLS)}
    return subprocess.Popen(
        [
            "valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null",
            sys.executable, "-m", f"bench.implementations.{module}",
        ],
        cwd=folder, env={**os.environ, **environment, **fixed}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
    )  # fmt: skip
