"""CPU time of child processes, interleaved so that noise affects all of them equally."""

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
    """Return user and system time of one command and everything it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def spent() -> float:
    """Return user and system time of this process and its finished children."""
    taken = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in taken)


def interleaved(
    commands: Mapping[str, Sequence[str]],
    rounds: int,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Return the median CPU time of each command over rounds in which every command runs once.

    A round before the others does not count: it may compile modules whose bytecode is cached then.
    """
    for command in commands.values():
        cpu_seconds(command, cwd=cwd, env=env)
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(cpu_seconds(command, cwd=cwd, env=env))
    return {name: statistics.median(times) for name, times in taken.items()}
