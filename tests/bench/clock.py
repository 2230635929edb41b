"""CPU time of child processes, taken in turns so that a noisy machine disturbs all alike."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def cpu_seconds(
    command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> float:
    """User and system time of one command and everything it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def interleaved(
    commands: Mapping[str, Sequence[str]],
    rounds: int,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """The median CPU time of each command over rounds in which every command runs once."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(cpu_seconds(command, cwd=cwd, env=env))
    return {name: statistics.median(times) for name, times in taken.items()}


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A Markdown table on standard output."""
    for row in (headings, ["---"] * len(headings), *rows):
        print(f"| {' | '.join(row)} |")
    print()
