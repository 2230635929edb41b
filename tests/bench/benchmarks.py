"""The benchmarks, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bench import (
    agent,
    build,
    claims,
    contacts,
    dev,
    embedding,
    governed,
    growth,
    host,
    instructions,
    relay,
    retrieval,
    start,
    stores,
)
from bench.report import Report, RunOptions, Table


class Benchmark(NamedTuple):
    """Measurements that belong together, and the tables they fill."""

    run: Callable[[Report, RunOptions], None]
    tables: tuple[Table, ...]
    on_request: bool = False
    """Whether it runs only if it is named, or if its own option asks for it."""


BENCHMARKS = {
    "start": Benchmark(start.run, start.TABLES),
    "build": Benchmark(build.run, build.TABLES),
    "dev": Benchmark(dev.run, dev.TABLES),
    "governed": Benchmark(governed.run, governed.TABLES),
    "instructions": Benchmark(instructions.run, instructions.TABLES, on_request=True),
    "stores": Benchmark(stores.run, stores.TABLES),
    "growth": Benchmark(growth.run, growth.TABLES),
    "relay": Benchmark(relay.run, relay.TABLES),
    "host": Benchmark(host.run, host.TABLES),
    "agent": Benchmark(agent.run, agent.TABLES),
    "claims": Benchmark(claims.run, claims.TABLES),
    "retrieval": Benchmark(retrieval.run, retrieval.TABLES),
    "embedding": Benchmark(embedding.run, embedding.TABLES),
    "contacts": Benchmark(contacts.run, contacts.TABLES),
}
