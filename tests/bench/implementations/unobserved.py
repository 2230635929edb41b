"""Jackfield with every policy and its store in memory, without audit and metrics."""

from __future__ import annotations

from bench.implementations.runtime import governed
from bench.implementations.timer import run

if __name__ == "__main__":
    run(governed(observed=False))
