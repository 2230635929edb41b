"""Jackfield with every policy and its store in memory, but nothing that observes: no audit, no metrics."""

from __future__ import annotations

from bench.contestants.hosting import governed
from bench.contestants.stopwatch import run

if __name__ == "__main__":
    run(governed(observed=False))
