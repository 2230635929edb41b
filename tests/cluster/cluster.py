"""The cluster: a store, several hosts, and nginx; everything is started and stopped together."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.database import Database
from faults.deployment import Deployment, Host, Store
from jackfield_host.security.api_keys import new_key

from cluster.proxy import Proxy

EXPIRY = 60.0
"""How long a call waits for its user, in seconds."""

USER = "cluster"


class ClusterDeployment(Deployment):
    """A deployment whose hosts accept requests through nginx, with an API key."""

    workers = 1
    """The processes of each host."""

    def __init__(self, folder: Path, store: Store | None) -> None:
        made = new_key("cluster", USER, ["operator"])
        self.key = made.key
        self.headers = {"Authorization": f"Bearer {made.key}"}
        self.tables = {"host.keys.cluster": tomllib.loads(made.lines)["host"]["keys"]["cluster"]}
        super().__init__(folder, expiry=EXPIRY, store=store)

    def write_settings(self, name: str, *, lease: float | None, **host: Any) -> Path:
        """Write a settings file of a host that trusts nginx on this machine."""
        return super().write_settings(
            name, lease=lease, proxies=["127.0.0.1"], max_sessions=100_000, workers=self.workers, **host
        )


@dataclass
class Cluster:
    """A running cluster."""

    deployment: ClusterDeployment
    hosts: list[Host]
    proxy: Proxy
    database: Database | None
    """PostgreSQL; None if the hosts share a SQLite file."""

    @property
    def entrances(self) -> list[Any]:
        """Where a request can be sent: nginx, and every host that is up."""
        return [self.proxy, *(host for host in self.hosts if host.is_up)]


@asynccontextmanager
async def running(folder: Path, *, hosts: int, store: str, standby: bool = True) -> AsyncIterator[Cluster]:
    """Run a cluster; `store` is `postgres` or `sqlite`."""
    async with AsyncExitStack() as closing:
        database = None
        if store == "postgres":
            database = closing.enter_context(Database.temporary(standby=standby))
        deployment = ClusterDeployment(folder, database.store if database else None)
        made = [Host(deployment, number + 1) for number in range(hosts)]
        for host in made:
            closing.push_async_callback(host.close)
        # The first alone: it creates the tables.
        await made[0].start()
        await asyncio.gather(*(host.start() for host in made[1:]))
        proxy = Proxy(folder / "nginx", [host.port for host in made], deployment.headers)
        closing.push_async_callback(proxy.close)
        await proxy.start()
        yield Cluster(deployment, made, proxy, database)
