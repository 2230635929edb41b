"""Jackfield with every policy, audit and metrics, and its store in a file.

Beyond what it does in memory, a call survives a crash and a power cut: it waits twice for the disk. The calls
come one after the other here; many at a time share their flushes.
"""

from __future__ import annotations

from bench.implementations.runtime import governed
from bench.implementations.timer import run

if __name__ == "__main__":
    run(governed("sqlite"))
