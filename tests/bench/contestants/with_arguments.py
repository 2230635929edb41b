"""Jackfield as in `governed`, and the audit shows the arguments too, which it first clears of secrets."""

from __future__ import annotations

from bench.contestants.hosting import governed
from bench.contestants.stopwatch import run

if __name__ == "__main__":
    run(governed(arguments=True))
