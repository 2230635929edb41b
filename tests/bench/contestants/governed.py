"""Jackfield with every policy, its store in memory, audit and metrics on.

A call is checked against the schema and completed with its defaults; kept from running twice; held against
bans, the turn's budget and the model's own repetitions; timed, retried once if it failed in passing, stopped
when it takes too long; and it leaves a line in the audit, which is written to a file.
"""

from __future__ import annotations

from bench.contestants.hosting import governed
from bench.contestants.stopwatch import run

if __name__ == "__main__":
    run(governed())
