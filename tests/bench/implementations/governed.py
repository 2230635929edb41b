"""Jackfield with every policy, its store in memory, audit and metrics on.

A call is validated, completed with defaults and deduplicated; checked against bans, the turn's budget and
loops; timed, retried once after a transient failure, stopped at its deadline; and it is written to the audit
file.
"""

from __future__ import annotations

from bench.implementations.runtime import governed
from bench.implementations.timer import run

if __name__ == "__main__":
    run(governed())
