"""The parts of the bench, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bench import agent, building, contacts, governed, hosting, relay, retrieval, start
from bench.recording import Asked, Report, Table


class Part(NamedTuple):
    """Measurements that belong together, and the tables they fill."""

    run: Callable[[Report, Asked], None]
    tables: tuple[Table, ...]


PARTS = {
    "start": Part(start.run, start.TABLES),
    "building": Part(building.run, building.TABLES),
    "governed": Part(governed.run, governed.TABLES),
    "relay": Part(relay.run, relay.TABLES),
    "hosting": Part(hosting.run, hosting.TABLES),
    "agent": Part(agent.run, agent.TABLES),
    "retrieval": Part(retrieval.run, retrieval.TABLES),
    "contacts": Part(contacts.run, contacts.TABLES),
}
