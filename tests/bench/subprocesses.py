"""Benchmark programs that run as subprocesses and print their figures as JSON in the last line."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Self, cast

Figures = dict[str, float]

PATIENCE = 1200
"""Timeout of a program in seconds."""


class ProgramError(Exception):
    """A benchmark program failed or timed out."""


def run_module(
    module: str,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    patience: float = PATIENCE,
) -> Figures:
    """Run a module of the bench and return its figures."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", f"bench.{module}", *arguments],
            cwd=folder, env={**os.environ, **(environment or {})}, check=False,
            capture_output=True, text=True, timeout=patience,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise ProgramError(f"bench.{module} had not ended after {patience} seconds") from late
    if ran.returncode or not ran.stdout:
        last = (ran.stderr.strip() or "it printed nothing").splitlines()[-1]
        raise ProgramError(f"bench.{module} failed: {last}\n{ran.stderr}")
    figures: Figures = json.loads(ran.stdout.splitlines()[-1])
    return figures


def run_interleaved(
    modules: Sequence[str],
    turns: int,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, list[Figures]]:
    """Run programs in short interleaved turns: each gets a line per turn and returns its figures.

    Figures that a program prints before its first turn apply to every turn.
    """
    with ExitStack() as stack:
        programs: dict[str, _Program] = {}
        known: dict[str, Figures] = {}
        for module in modules:
            # Each is ready before the next starts: it measures how much work fits into a turn.
            programs[module] = stack.enter_context(_Program(module, folder, environment))
            known[module] = programs[module].said()
        taken: dict[str, list[Figures]] = {module: [] for module in modules}
        for _ in range(turns):
            for module, program in programs.items():
                program.go_on()
                taken[module].append(known[module] | program.said())
    return taken


class _Program:
    """A benchmark program that waits for its turn."""

    def __init__(self, module: str, folder: Path | None, environment: Mapping[str, str] | None) -> None:
        self._module = module
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed where the program is left
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"bench.{module}"],
            cwd=folder, env={**os.environ, **(environment or {})}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        )  # fmt: skip
        # A program that hangs is killed and prints nothing.
        self._patience = threading.Timer(PATIENCE, self._process.kill)
        self._patience.daemon = True
        self._patience.start()
        if hasattr(os, "sched_setaffinity"):
            # All on the same core: cores differ, and a moved process finds empty caches.
            os.sched_setaffinity(self._process.pid, {max(os.sched_getaffinity(0))})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._patience.cancel()
        # It exits when its input ends.
        with self._errors, self._process as process, suppress(BrokenPipeError):
            cast("IO[str]", process.stdin).close()

    def go_on(self) -> None:
        with suppress(BrokenPipeError):
            print(file=self._process.stdin, flush=True)

    def said(self) -> Figures:
        line = cast("IO[str]", self._process.stdout).readline()
        if not line:
            self._errors.seek(0)
            raise ProgramError(f"bench.{self._module} failed: {self._errors.read() or 'it said nothing'}")
        figures: Figures = json.loads(line)
        return figures


def installed(module: str) -> bool:
    """Return whether a module can be imported; its package may be missing as well."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def median(rounds: Iterable[Figures], name: str) -> float:
    return statistics.median(figures[name] for figures in rounds)


def ratio(rounds: Sequence[Figures], to: Sequence[Figures], name: str = "us") -> float:
    """Return the median of the ratios of each round, which a slow minute affects least."""
    return statistics.median(figures[name] / others[name] for figures, others in zip(rounds, to, strict=True))
