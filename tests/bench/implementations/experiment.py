"""Jackfield as in `governed`, in a session that takes part in an experiment whose calls are collected."""

from __future__ import annotations

from bench.implementations.runtime import governed
from bench.implementations.timer import run

if __name__ == "__main__":
    run(governed(assigned=True))
