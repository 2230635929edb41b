"""Jackfield as in `governed`, with redacted arguments in the audit."""

from __future__ import annotations

from bench.implementations.runtime import governed
from bench.implementations.timer import run

if __name__ == "__main__":
    run(governed(arguments=True))
