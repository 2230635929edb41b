"""The benchmarks, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bench import agent, build, contacts, dev, governed, host, relay, retrieval, start
from bench.report import Report, RunOptions, Table


class Benchmark(NamedTuple):
    """Measurements that belong together, and the tables they fill."""

    run: Callable[[Report, RunOptions], None]
    tables: tuple[Table, ...]


BENCHMARKS = {
    "start": Benchmark(start.run, start.TABLES),
    "build": Benchmark(build.run, build.TABLES),
    "dev": Benchmark(dev.run, dev.TABLES),
    "governed": Benchmark(governed.run, governed.TABLES),
    "relay": Benchmark(relay.run, relay.TABLES),
    "host": Benchmark(host.run, host.TABLES),
    "agent": Benchmark(agent.run, agent.TABLES),
    "retrieval": Benchmark(retrieval.run, retrieval.TABLES),
    "contacts": Benchmark(contacts.run, contacts.TABLES),
}
