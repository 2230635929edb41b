"""A host that a broken network separates from the database: it never acts as the holder of anything.

The test makes its own network namespace, with one link to the database and one to the clients.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path

import httpx
import pytest
from cluster.cluster import ClusterDeployment
from faults import client
from faults.checks import LOST, check_call
from faults.client import SessionSocket
from faults.deployment import NOTE, Host, Store
from faults.effect_log import EffectLog
from faults.record import CallRecord
from jackfield_testkit.postgres import PostgresServer

PATIENCE = 120.0

LEASE = 2.0


class Network:
    """A namespace with two links, one of which can be cut."""

    def __init__(self) -> None:
        number = os.getpid() % 250
        self.name = f"jackfield-{os.getpid()}"
        self.links = {"d": f"10.231.{number}", "c": f"10.232.{number}"}
        self._outside = {each: f"jf{each}{os.getpid()}" for each in self.links}

    @property
    def database(self) -> str:
        """The address of this side of the link to the database."""
        return f"{self.links['d']}.1"

    @property
    def host(self) -> str:
        """The address at which clients reach a host in the namespace."""
        return f"{self.links['c']}.2"

    def create(self) -> None:
        ip("netns", "add", self.name)
        self._inside("link", "set", "lo", "up")
        for kind, network in self.links.items():
            outside, inside = self._outside[kind], f"in{kind}"
            ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", self.name)
            ip("addr", "add", f"{network}.1/30", "dev", outside)
            ip("link", "set", outside, "up")
            self._inside("addr", "add", f"{network}.2/30", "dev", inside)
            self._inside("link", "set", inside, "up")

    def cut(self) -> None:
        """Drop every packet between the host and the database."""
        ip("link", "set", self._outside["d"], "down")

    def heal(self) -> None:
        """Deliver packets again."""
        ip("link", "set", self._outside["d"], "up")

    def delete(self) -> None:
        for outside in self._outside.values():
            with suppress(subprocess.CalledProcessError):
                ip("link", "del", outside)
        with suppress(subprocess.CalledProcessError):
            ip("netns", "del", self.name)

    def _inside(self, *words: str) -> None:
        ip("-n", self.name, *words)


def ip(*words: str) -> None:
    program = shutil.which("ip") or "/usr/sbin/ip"
    subprocess.run([program, *words], check=True, capture_output=True)


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network()
    try:
        made.create()
    except (OSError, subprocess.CalledProcessError) as error:
        made.delete()
        pytest.skip(f"network namespaces are not permitted here: {error}")
    yield made
    made.delete()


@contextmanager
def database(network: Network) -> Iterator[PostgresServer]:
    """Run a server that hosts reach on both sides of the link."""
    with tempfile.TemporaryDirectory(prefix="jackfield-partition-", ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        server = PostgresServer(
            Path(place) / "data", settings={"listen_addresses": f"127.0.0.1,{network.database}"}
        )
        try:
            server.start()
            with (server.folder / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {network.links['d']}.0/30 trust\n")
            server.execute("SELECT pg_reload_conf()")
            yield server
        finally:
            server.stop("immediate")


def store_at(address: str, server: PostgresServer) -> Store:
    return Store(
        "postgres", {"url": f"postgresql://postgres@{address}:{server.port}/postgres", "lease": LEASE}
    )


def note(name: str, session: str, before: float) -> CallRecord:
    return CallRecord(name, f"partition-{name}", NOTE, before, 0.0, "none", session)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a coroutine function returns true."""
    end = time.monotonic() + PATIENCE
    while not await condition():
        assert time.monotonic() < end, "timed out"
        await asyncio.sleep(0.1)


async def is_ready(host: Host) -> bool:
    with suppress(httpx.HTTPError):
        return (await host.http.get("/health/ready", timeout=10.0)).status_code == 200
    return False


def test_a_host_cut_off_from_the_database_does_nothing_as_holder_and_recovers(
    network: Network, tmp_path: Path
) -> None:
    with database(network) as server:
        asyncio.run(separate(network, server, tmp_path))


async def separate(network: Network, server: PostgresServer, folder: Path) -> None:
    deployment = ClusterDeployment(folder, store_at("127.0.0.1", server))
    # The same deployment, seen from the other side of the link.
    elsewhere = copy(deployment)
    elsewhere.store = store_at(network.database, server)
    connected = Host(deployment, 1)
    separated = Host(elsewhere, 2, address=network.host, prefix=("ip", "netns", "exec", network.name))
    log = EffectLog(folder)
    following = asyncio.create_task(log.follow())
    try:
        await connected.start()
        await separated.start()
        await act(connected, separated, network, log)
    finally:
        following.cancel()
        await asyncio.gather(connected.close(), separated.close())


async def act(connected: Host, separated: Host, network: Network, log: EffectLog) -> None:
    session = await client.open_session(separated)
    assert session
    socket = await SessionSocket.open(session, separated)
    assert socket
    await until(lambda: immediately(socket.was_resumed))
    running, fresh = note("running", session, before=3.0), note("fresh", session, before=0.0)
    delivery = asyncio.create_task(client.execute(running, separated))
    assert await log.until(lambda: running.name in log.begun, PATIENCE)
    network.cut()

    # It says that it is not ready, and begins nothing.
    await until(lambda: isnt(is_ready(separated)))
    refused = await client.execute(fresh, separated)
    assert refused is None or refused.state == "unavailable"
    assert fresh.name not in log.begun
    # The call that ran is answered with what it did, which is true, although nobody else can know it yet.
    answered = await delivery
    assert answered is None or answered.state in ("done", "in_doubt", "unavailable")

    # The other host takes over. It knows that the call began, and not how it ended.
    moved = await SessionSocket.open(session, connected)
    assert moved
    await until(lambda: immediately(moved.was_resumed))

    async def is_in_doubt() -> bool:
        said = await client.execute(running, connected)
        return said is not None and said.state == "in_doubt"

    await until(is_in_doubt)
    done = await client.execute(fresh, connected)
    assert done is not None
    assert done.state == "done"

    # Healed, both say the same, and nothing runs again.
    network.heal()
    await until(lambda: is_ready(separated))
    # While it was cut off, it published nothing of these calls.
    mine = {running.key, fresh.key}
    assert not [
        each for each in socket.messages if each["type"] == "tool_complete" and each["callId"] in mine
    ]
    for call in (running, fresh):
        await until(lambda call=call: agree(call, connected, separated))  # type: ignore[misc]
    log.look()
    for call in (running, fresh):
        found = check_call(call, log.effects[call.name])
        # Meanwhile the other host said that it was in doubt, after its own host had said that it was done.
        assert [each for each in found if (each.call, each.kind) != (running.name, LOST)] == []
        assert len(log.effects[call.name]) == 1
    await socket.close()
    await moved.close()


async def agree(call: CallRecord, *hosts: Host) -> bool:
    """Return whether all hosts say the same about a call, and say what is possible."""
    said = [await client.execute(call, host) for host in hosts]
    states = {each.state for each in said if each is not None}
    return len(states) == 1 and states <= {"done", "in_doubt"}


async def immediately(value: bool) -> bool:
    return value


async def isnt(answer: Awaitable[bool]) -> bool:
    return not await answer
