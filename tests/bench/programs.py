"""Programs of the bench that measure by themselves and print what they found as JSON in their last line."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

Figures = dict[str, float]

PATIENCE = 1200
"""Seconds after which a program hangs, and is not only slow."""


class ProgramError(Exception):
    """A program of the bench did not come to its end."""


def ask(module: str, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Figures:
    """What a module of the bench measured."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", f"bench.{module}"],
            cwd=folder, env={**os.environ, **(environment or {})}, check=False,
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise ProgramError(f"bench.{module} had not ended after {PATIENCE} seconds") from late
    if ran.returncode or not ran.stdout:
        last = (ran.stderr.strip() or "it printed nothing").splitlines()[-1]
        raise ProgramError(f"bench.{module} failed: {last}\n{ran.stderr}")
    figures: Figures = json.loads(ran.stdout.splitlines()[-1])
    return figures


def installed(module: str) -> bool:
    """Whether a module could be imported, whose package may be missing as well."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def median(rounds: Iterable[Figures], name: str) -> float:
    return statistics.median(figures[name] for figures in rounds)


def ratio(rounds: Sequence[Figures], to: Sequence[Figures], name: str = "us") -> float:
    """The median of what stood in each round beside each other, which a slow minute disturbs least."""
    return statistics.median(figures[name] / others[name] for figures, others in zip(rounds, to, strict=True))
