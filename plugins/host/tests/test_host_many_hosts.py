"""Several hosts on one store act as one: limits, bans, lists and figures hold for all of them."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from host_harness import HostFolder, HostProcess, RunningHost, running_host, scripted_provider, wait_until
from http_client import SESSION, http_client, stream_events
from jackfield.host_reports import NAMES, PREFIX, HostDirectory, HostReport, read_reports
from jackfield.settings import SettingsError
from jackfield.store import MemoryStore, Store, StoreUnavailableError
from jackfield_host import heartbeat, startup
from jackfield_host.security.limits import UserTokenBuckets
from jackfield_host.security.shared_limits import SharedTokenBuckets
from jackfield_sessions import admission, manager
from jackfield_testkit.command_server import run_command
from session_views import echo

Hosts = tuple[RunningHost, RunningHost]


@asynccontextmanager
async def two_hosts(host_folder: HostFolder, **options: Any) -> AsyncIterator[Hosts]:
    """Run two hosts that know of each other."""
    async with (
        scripted_provider(echo, echo, echo, echo) as served,
        running_host(host_folder, served, name="north", **options) as north,
        running_host(host_folder, served, name="south", **options) as south,
    ):
        for host in (north, south):
            await host.sessions.runtime.hosts.reports()
        yield north, south


def run(
    host_folder: HostFolder, test: Callable[[RunningHost, RunningHost], Awaitable[None]], **options: Any
) -> None:
    async def main() -> None:
        async with two_hosts(host_folder, **options) as hosts:
            await test(*hosts)

    asyncio.run(main())


def store_of(host: RunningHost) -> Store:
    return host.sessions.runtime.store


async def report_dead_host(store: Store) -> str:
    """Leave the report of a host that was killed a minute ago; return its id."""
    dead = HostDirectory(store, "gone")
    await dead.report(sessions=7)
    report = json.loads((await store.get(f"{PREFIX}{dead.id}")) or b"")
    report["reported_at"] -= 60
    await store.put(f"{PREFIX}{dead.id}", json.dumps(report).encode(), ttl=600)
    return dead.id


# Limits


def test_requests_count_against_one_limit_on_all_hosts(host_folder: HostFolder) -> None:
    async def test(north: RunningHost, south: RunningHost) -> None:
        began, admitted, refused = time.monotonic(), 0, 0
        async with http_client(north) as one, http_client(south) as other:
            for number in range(18):
                answer = await (one, other)[number % 2].get("/tools/hst_look")
                admitted += answer.status_code == 200
                if answer.status_code != 200:
                    assert answer.json()["error"]["code"] == "too_many_requests"
                    refused += 1
        # Each host alone would admit nine of them; together they admit the burst of 10 and what is refilled.
        assert admitted <= 11 + math.ceil(time.monotonic() - began)
        assert refused

    run(host_folder, test, requests_per_minute=60)


class Clock:
    """The time of a store that a test controls."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def buckets(store: Store, hosts: int, rate: float = 10.0, burst: float = 100.0) -> list[Any]:
    """Return the token buckets of so many hosts that know of each other."""
    directories = [HostDirectory(store) for _ in range(hosts)]
    for each in directories:
        await each.report()
    for each in directories:
        await each.reports()
    return [SharedTokenBuckets(UserTokenBuckets(rate, burst), store, each) for each in directories]


@pytest.mark.parametrize("hosts", [2, 5, 20])
@pytest.mark.parametrize("at_once", [True, False])
def test_many_hosts_exceed_a_burst_by_a_tenth_at_most(hosts: int, at_once: bool) -> None:
    async def main() -> int:
        shared = await buckets(MemoryStore(), hosts, rate=0.001)
        asked = [each.take("ada") for _ in range(100) for each in shared]
        waits = await asyncio.gather(*asked) if at_once else [await each for each in asked]
        return sum(wait == 0 for wait in waits)

    assert 90 <= asyncio.run(main()) <= 110


def test_a_host_that_is_alone_does_not_ask_the_store() -> None:
    store = MemoryStore()

    async def unavailable(*_: Any, **__: Any) -> int:
        raise StoreUnavailableError("the store is away")

    async def main() -> int:
        (alone,) = await buckets(store, 1, rate=0.001)
        store.add = unavailable  # type: ignore[method-assign]
        return sum([await alone.take("ada") == 0 for _ in range(150)])

    assert asyncio.run(main()) == 100


def test_several_hosts_refuse_requests_that_they_cannot_count() -> None:
    store = MemoryStore()

    async def unavailable(*_: Any, **__: Any) -> int:
        raise StoreUnavailableError("the store is away")

    async def main() -> None:
        one, _ = await buckets(store, 2)
        store.add = unavailable  # type: ignore[method-assign]
        with pytest.raises(StoreUnavailableError):
            await asyncio.gather(*(one.take("ada") for _ in range(100)))

    asyncio.run(main())


def test_what_was_taken_elsewhere_long_ago_does_not_count() -> None:
    clock = Clock()

    async def main() -> int:
        one, other = await buckets(MemoryStore(clock), 2)
        for _ in range(100):
            await one.take("ada")
        clock.now += 30
        return sum([await other.take("ada") == 0 for _ in range(100)])

    assert asyncio.run(main()) >= 99


def test_sessions_count_against_one_limit_on_all_hosts(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "ROOM_SECONDS", 0.2)

    async def test(north: RunningHost, south: RunningHost) -> None:
        async with north.client("text"), south.client("text") as second:
            for host in (north, south):
                async with host.connected("text") as third:
                    await third.say("start")
                    assert (await third.until_closed())[0] == 4008
                    assert third.of("error")[0]["code"] == "too_many_sessions"
            await second.say("end")
            await second.until_closed()
            async with north.client("text") as fourth:
                assert fourth.session

    run(host_folder, test, sessions_per_user=2)


def test_an_abandoned_session_of_another_host_makes_room(host_folder: HostFolder) -> None:
    async def test(north: RunningHost, south: RunningHost) -> None:
        async with north.client("text") as first:
            pass
        await wait_until(lambda: all(each.is_abandoned for each in north.sessions.live.values()))
        async with south.client("text") as second:
            assert second.session
            assert not north.sessions.live
        # It was saved before it was closed.
        async with north.client("text", token=first.token, lastEvent=first.last_event) as again:
            assert again.session

    run(host_folder, test, sessions_per_user=1, grace_seconds=600)


def test_sessions_of_a_host_that_died_do_not_count(host_folder: HostFolder) -> None:
    async def test(north: RunningHost, south: RunningHost) -> None:
        dead = await report_dead_host(store_of(north))
        await store_of(north).put(f"live/local/{'0' * 32}/{dead}", b"", ttl=600)
        assert dead in {each.id for each in await south.sessions.runtime.hosts.reports()}
        async with south.client("text") as client:
            assert client.session

    run(host_folder, test, sessions_per_user=1)


def test_event_streams_count_against_one_limit_on_all_hosts(host_folder: HostFolder) -> None:
    async def test(north: RunningHost, south: RunningHost) -> None:
        async with http_client(north) as one, http_client(south) as other:
            made = (await one.post("/execute/hst_look", json={"arguments": {"text": "a"}})).json()
            named = {SESSION: made["token"]}
            async with one.stream("GET", "/events", headers=named) as response:
                # Kept: a generator that is collected closes its stream.
                following = stream_events(response)
                await anext(following)
                refused = await other.get("/events", headers=named)
                assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_streams")

            await wait_until(lambda: not len(north.sessions.streams))
            async with other.stream("GET", "/events", headers=named) as response:
                assert response.status_code == 200

    run(host_folder, test, sessions_per_user=1)


# Bans


def test_a_ban_closes_the_silent_sessions_of_other_hosts(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "CHECK_SECONDS", 0.1)

    async def test(north: RunningHost, south: RunningHost) -> None:
        async with north.client("text") as listening:
            await south.sessions.runtime.capabilities["bans"].add("local", 60)
            assert (await listening.until_closed())[0] == 4005
            async with http_client(north) as client:
                refused = await client.get("/status")
                assert (refused.status_code, refused.json()["error"]["code"]) == (403, "banned")

    run(host_folder, test)


# Lists and figures


def test_every_host_lists_all_hosts_and_their_sums(host_folder: HostFolder) -> None:
    async def test(north: RunningHost, south: RunningHost) -> None:
        dead = await report_dead_host(store_of(north))
        async with north.client("text"), http_client(south) as client:
            await north.host.heartbeat.start()
            listed = (await client.get("/hosts")).json()
            assert listed["host"] == "south"
            assert [each["name"] for each in listed["hosts"]] == ["gone", "north", "south"]
            gone, first, second = listed["hosts"]
            assert (gone["id"], gone["silent"], gone["sessions"]) == (dead, True, 7)
            assert (first["silent"], first["sessions"], second["sessions"]) == (False, 1, 0)
            assert (listed["sums"]["hosts"], listed["sums"]["sessions"]) == (2, 1)
            status = (await client.get("/status")).json()
            assert (status["host"], status["hosts"]) == ("south", 2)
            counts = status["sessions"]
            assert (counts["active"], counts["onAllHosts"], counts["yours"]) == (0, 1, 1)

    run(host_folder, test)


def test_a_session_is_listed_with_its_host_on_every_host(host_folder: HostFolder) -> None:
    async def test(north: RunningHost, south: RunningHost) -> None:
        async with http_client(south) as client:

            async def listed() -> tuple[Any, ...]:
                (only,) = (await client.get("/sessions")).json()["sessions"]
                return only["live"], only["connected"], only["host"]

            async def until(*expected: Any) -> None:
                async with asyncio.timeout(30):
                    while await listed() != expected:  # noqa: ASYNC110 - there is no event to wait for
                        await asyncio.sleep(0.05)

            async with north.client("text") as ada:
                await until(True, True, "north")
            await until(True, False, "north")
            async with south.client("text", token=ada.token, lastEvent=ada.last_event):
                # The previous owner has an entry too, until it notices that it lost the session.
                await until(True, True, "south")
            async with http_client(north) as other:
                (seen,) = (await other.get("/sessions")).json()["sessions"]
                assert seen["host"] == "south"

    run(host_folder, test, grace_seconds=600)


def jackfield(config: Path, folder: HostFolder, *arguments: str) -> Any:
    done = run_command(
        [*arguments, "--config", str(config), "--json"],
        cwd=folder.path,
        env={**os.environ, "PYTHONPATH": str(folder.site)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_processes_share_a_store_and_a_call_of_a_killed_host_is_reported_by_another(
    host_folder: HostFolder,
) -> None:
    """Two real processes: the command line lists both, and one is killed in the middle of a call."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(scripted_provider(echo))
            north, south = [HostProcess(host_folder, served, name=name) for name in ("north", "south")]
            await asyncio.gather(*(stack.enter_async_context(host) for host in (north, south)))
            one = await stack.enter_async_context(http_client(north))
            other = await stack.enter_async_context(http_client(south))

            async with north.client("text") as ada:
                hosts = await asyncio.to_thread(jackfield, north.config, host_folder, "hosts")
                assert [(each["name"], each["silent"]) for each in hosts["hosts"]] == [
                    ("north", False),
                    ("south", False),
                ]
                listed = await asyncio.to_thread(jackfield, north.config, host_folder, "sessions", "list")
                assert [(each["id"], each["host"]) for each in listed] == [
                    (ada.token.partition(".")[0], "north")
                ]
            for client, name in ((one, "north"), (other, "south")):
                metrics = (await client.get("/metrics")).text
                assert f'jackfield_host_info{{host="{name}"}} 1.0' in metrics
                await client.post("/execute/hst_look", json={"arguments": {"text": name}})
            lines = {each["host"]: each for each in await host_folder.audited(2)}
            assert set(lines) == {"north", "south"}

            made = (await one.post("/execute/hst_look", json={"arguments": {"text": "begin"}})).json()
            named = {
                SESSION: made["session"]["token"] if isinstance(made["session"], dict) else made["token"]
            }
            body = {"arguments": {"text": "write", "before": "never"}, "call_id": "call-of-a-dead-host"}
            running = asyncio.create_task(one.post("/execute/hst_note", json=body, headers=named))
            await wait_until(lambda: host_folder.effects("begun write"))
            state = (await other.get("/tasks/call-of-a-dead-host", headers=named)).json()["state"]
            assert state == "running"
            await north.kill()
            with pytest.raises(httpx.HTTPError):
                await running

            async with other.stream("GET", "/events", headers=named) as response:
                async for event in stream_events(response):
                    if event.name == "tool_error":
                        assert (event.data["callId"], event.data["state"]) == (body["call_id"], "in_doubt")
                        break
            found = (await other.get("/tasks/call-of-a-dead-host", headers=named)).json()
            assert found["state"] == "in_doubt"
            assert host_folder.effects("begun write") == 1

    asyncio.run(main())


# Names


def test_a_host_is_refused_while_another_one_with_its_name_is_alive(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(scripted_provider(echo))
            first = HostProcess(host_folder, served, name="north")
            await stack.enter_async_context(first)
            monkeypatch.setattr(startup, "SILENT_SECONDS", 0.5)
            with pytest.raises(SettingsError, match="another host with the name north is running at 127"):
                async with running_host(host_folder, served, name="north"):
                    pass
            # A host that dies does not block its successor.
            monkeypatch.setattr(startup, "SILENT_SECONDS", 60.0)
            await first.kill()
            async with running_host(host_folder, served, name="north") as second:
                assert second.sessions.runtime.hosts.name == "north"
            # Nor does one that was stopped.
            monkeypatch.setattr(startup, "SILENT_SECONDS", 0.0)
            async with running_host(host_folder, served, name="north"):
                pass

    asyncio.run(main())


def test_a_draining_host_leaves_its_name_to_its_successor(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "SILENT_SECONDS", 30.0)

    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served, name="north") as north,
        ):
            north.sessions.admission.closed = True
            north.sessions.stopping.set()
            async with running_host(host_folder, served, name="north"):
                pass

    asyncio.run(main())


def test_a_host_whose_name_was_taken_while_it_was_away_says_so(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(heartbeat, "REPORT_SECONDS", 0.05)

    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served, name="north") as north,
            running_host(host_folder, served, name="south") as south,
        ):
            successor = HostDirectory(store_of(south), "north")

            # As if the store had regarded the host as dead.
            await store_of(north).abandon(NAMES + "north")
            assert await successor.take_name()
            await wait_until(lambda: "another one took its name, north" in caplog.text)

    asyncio.run(main())


# Readiness


def test_a_draining_host_is_not_ready_at_once_but_serves_its_sessions_to_the_end(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(scripted_provider(echo))
            host = await stack.enter_async_context(HostProcess(host_folder, served))
            client = await stack.enter_async_context(http_client(host))
            ada = await stack.enter_async_context(host.client("text"))
            named = {SESSION: ada.token}
            assert (await client.get("/health/ready")).status_code == 200
            body = {"arguments": {"text": "last", "before": "gate"}}
            running = asyncio.create_task(client.post("/execute/hst_note", json=body, headers=named))
            await wait_until(lambda: host_folder.effects("begun last"))
            os.kill(host.pid, signal.SIGTERM)
            await ada.until_type("going_away")
            ready = await client.get("/health/ready")
            assert (ready.status_code, ready.json()["reasons"]) == (503, ["the host is draining"])
            assert (await client.get("/health/live")).status_code == 200
            host_folder.open_gate("gate")
            assert (await running).status_code == 200
            assert (await ada.until_closed())[0] == 1012
            assert await host.ended() == 0

    asyncio.run(main())


# The directory of hosts


def test_a_host_that_stops_is_no_longer_listed(host_folder: HostFolder) -> None:
    async def main() -> list[HostReport]:
        async with scripted_provider(echo) as served, running_host(host_folder, served) as first:
            async with running_host(host_folder, served):
                assert len(await read_reports(store_of(first))) == 2
            return await read_reports(store_of(first))

    assert len(asyncio.run(main())) == 1


def test_a_killed_host_is_not_listed_beside_the_one_that_took_its_name() -> None:
    async def main() -> list[list[str]]:
        store, listed = MemoryStore(), []

        async def put(report_id: str, name: str, age: float) -> None:
            report = {"id": report_id, "name": name, "reported_at": store.now() - age}
            await store.put(PREFIX + report_id, json.dumps(report).encode())
            listed.append(sorted(each.id for each in await read_reports(store)))

        await put("killed", "north", 20)
        await put("other", "south", 0)
        await put("successor", "north", 0)
        return listed

    assert asyncio.run(main()) == [["killed"], ["killed", "other"], ["other", "successor"]]


def test_hosts_have_different_names_by_default(host_folder: HostFolder) -> None:
    async def main() -> set[str]:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served) as one,
            running_host(host_folder, served) as other,
        ):
            return {host.sessions.runtime.hosts.name for host in (one, other)}

    assert len(asyncio.run(main())) == 2


def test_a_report_of_another_version_is_ignored() -> None:
    async def main() -> list[str]:
        store = MemoryStore()
        await store.put(f"{PREFIX}1", b'{"id": "1", "title": "another form"}')
        await store.put(f"{PREFIX}2", b'{"id": "2", "name": "newer", "load": 3}')
        return [each.name for each in await read_reports(store)]

    assert asyncio.run(main()) == ["newer"]
