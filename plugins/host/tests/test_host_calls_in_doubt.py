"""`/calls`: operators list calls in doubt and settle each of them once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from host_harness import (
    HostFolder,
    HostProcess,
    RunningHost,
    make_doubt,
    running_host,
    scripted_provider,
    wait_until,
)
from http_client import SESSION, http_client
from jackfield.store import Store
from jackfield_host.security.api_keys import digest, new_key

KEYS = {name: new_key(name, name).key for name in ("ada", "ops")}


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[name]}"}


def run(host_folder: HostFolder, test: Callable[[RunningHost], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with scripted_provider() as served, running_host(host_folder, served, **options) as host:
            await test(host)

    asyncio.run(main())


def run_with_keys(host_folder: HostFolder, test: Callable[[RunningHost], Awaitable[None]]) -> None:
    roles = {"ops": ["operator"]}
    keys = {
        name: {"digest": digest(key), "user": name, "roles": roles.get(name, [])}
        for name, key in KEYS.items()
    }
    run(host_folder, test, keys=keys)


def store_of(host: RunningHost) -> Store:
    return host.sessions.runtime.store


async def note(ada: httpx.AsyncClient, key: str) -> httpx.Response:
    """Call a tool that writes, and then waits for a gate that stays closed."""
    return await ada.post(
        "/execute/hst_note",
        json={"arguments": {"text": key, "after": "never"}},
        headers={"Idempotency-Key": key},
    )


async def settle(ops: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await ops.post("/calls/settle", json=body)


@asynccontextmanager
async def killed_during(host_folder: HostFolder, *keys: str) -> AsyncIterator[httpx.AsyncClient]:
    """Connect to a host that was killed while calls with these keys ran, and started again."""
    async with scripted_provider() as served, HostProcess(host_folder, served) as host:
        async with http_client(host) as ada:
            running = [asyncio.create_task(note(ada, key)) for key in keys]
            await wait_until(lambda: all(host_folder.effects(f"done {key}") for key in keys))
            await host.kill()
            for each in await asyncio.gather(*running, return_exceptions=True):
                assert isinstance(each, httpx.TransportError)
        await host.start()
        async with http_client(host) as ada:
            yield ada


def test_calls_of_a_killed_host_are_listed_settled_and_replayed_as_settled(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        async with killed_during(host_folder, "it-did-run", "it-did-not") as ada:
            for key in ("it-did-run", "it-did-not"):
                doubtful = await note(ada, key)
                assert (doubtful.status_code, doubtful.json()["envelope"]["meta"]["state"]) == (
                    500,
                    "in_doubt",
                )
            listed = (await ada.get("/calls")).json()
            assert listed["complete"]
            calls = {each["arguments"].split('"')[3]: each for each in listed["calls"]}
            assert set(calls) == {"it-did-run", "it-did-not"}
            call = calls["it-did-run"]
            assert (call["tool"], call["user"], call["callId"]) == (
                "hst_note",
                "local",
                (await note(ada, "it-did-run")).json()["callId"],
            )

            ran = await settle(ada, key=call["key"], ran=True, data={"noted": 7})
            assert (ran.status_code, ran.json()["state"]) == (200, "done")
            not_run = await settle(ada, key=calls["it-did-not"]["key"], ran=False)
            assert (not_run.status_code, not_run.json()["state"]) == (200, "never_run")
            assert (await ada.get("/calls")).json()["calls"] == []

            again = await note(ada, "it-did-run")
            assert (again.status_code, again.json()["envelope"]) == (200, ran.json()["envelope"])
            assert again.json()["envelope"]["data"] == {"noted": 7}
            named = {SESSION: again.json()["token"]}
            task = (await ada.get(f"/tasks/{call['callId']}", headers=named)).json()
            assert (task["state"], task["data"]) == ("done", {"noted": 7})
            again = await note(ada, "it-did-not")
            assert (again.status_code, again.json()["envelope"]) == (422, not_run.json()["envelope"])
            assert host_folder.effects("done it-did-run") == host_folder.effects("done it-did-not") == 1

            second = await settle(ada, key=call["key"], ran=False)
            assert (second.status_code, second.json()["error"]["code"]) == (404, "not_in_doubt")
            assert "Another operator may have settled it." in second.json()["error"]["message"]
            lines = (await ada.get("/audit", params={"tool": "hst_note"})).json()["lines"]
            decided = [each["decisions"]["duplicates"] for each in lines]
            assert [each for each in decided if each.startswith("settled")] == [
                "settled as never run by local",
                "settled as run by local",
            ]
            (settled,) = [
                each for each in lines if each["decisions"]["duplicates"].startswith("settled as run")
            ]
            original = ("hst_note", "1.2.3", "action", ran.json()["envelope"]["meta"]["registryVersion"])
            assert (
                tuple(settled[each] for each in ("tool", "toolVersion", "category", "registryVersion"))
                == original
            )

    asyncio.run(main())


def test_an_approved_call_in_doubt_is_settled_with_the_key_of_its_run(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with scripted_provider() as served, HostProcess(host_folder, served) as host:
            async with http_client(host) as ada:
                asked = (
                    await ada.post(
                        "/execute/hst_book", json={"arguments": {"text": "a table", "after": "never"}}
                    )
                ).json()
                path, named = f"/confirmations/{asked['confirmation']['token']}", {SESSION: asked["token"]}
                deciding = asyncio.create_task(ada.post(path, json={"approve": True}, headers=named))
                await wait_until(lambda: host_folder.effects("done a table"))
                await host.kill()
                await asyncio.gather(deciding, return_exceptions=True)
            await host.start()
            async with http_client(host) as ada:
                (call,) = (await ada.get("/calls")).json()["calls"]
                assert (call["tool"], call["callId"], call["session"]) == (
                    "hst_book",
                    asked["callId"],
                    asked["session"],
                )
                settled = (await settle(ada, key=call["key"], ran=True)).json()
                decided = (await ada.post(path, json={"approve": True}, headers=named)).json()
                assert (decided["state"], decided["envelope"]) == ("done", settled["envelope"])
                task = (await ada.get(f"/tasks/{asked['callId']}", headers=named)).json()
                assert task["state"] == "done"

    asyncio.run(main())


def test_only_operators_see_and_settle_calls_in_doubt(host_folder: HostFolder) -> None:
    async def test(host: RunningHost) -> None:
        await make_doubt(store_of(host), "call/s/call-1234567")
        async with http_client(host, **bearer("ada")) as ada, http_client(host, **bearer("ops")) as ops:
            for refused in (await ada.get("/calls"), await settle(ada, key="call/s/call-1234567", ran=True)):
                assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_operator")
            assert len((await ops.get("/calls")).json()["calls"]) == 1
            settled = (await settle(ops, key="call/s/call-1234567", ran=True)).json()
            assert settled["envelope"]["meta"]["settled"]["by"] == "ops"

    run_with_keys(host_folder, test)


def test_only_one_of_several_operators_settles_a_call(host_folder: HostFolder) -> None:
    async def test(host: RunningHost) -> None:
        await make_doubt(store_of(host), "call/s/call-1234567")
        async with http_client(host) as ops:
            settling = [settle(ops, key="call/s/call-1234567", ran=bool(each % 2)) for each in range(6)]
            answers = await asyncio.gather(*settling)
            assert sorted(each.status_code for each in answers) == [200, *[404] * 5]

    run(host_folder, test)


def test_calls_in_doubt_are_listed_oldest_first_up_to_the_limit(host_folder: HostFolder) -> None:
    async def test(host: RunningHost) -> None:
        for number in (3, 1, 2):
            await make_doubt(store_of(host), f"call/s/number-{number}", at=float(number))
        async with http_client(host) as ops:
            listed = (await ops.get("/calls", params={"limit": 2})).json()
            assert [each["beganAt"] for each in listed["calls"]] == [1.0, 2.0]
            assert not listed["complete"]
            assert (await ops.get("/calls", params={"limit": 0})).status_code == 400

    run(host_folder, test)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"ran": True}, "key: it is missing"),
        ({"key": "call/s/call-1234567"}, "ran: it is missing"),
        ({"key": "call/s/call-1234567", "ran": "yes"}, "ran: expected true or false"),
        ({"key": "", "ran": True}, "key: expected at least 1 character"),
        (
            {"key": "call/s/call-1234567", "ran": False, "data": None},
            "data: a call that did not run has no result",
        ),
        ({"key": "call/s/call-1234567", "ran": True, "by": "somebody"}, "by: there is no such member"),
    ],
)
def test_an_invalid_settle_request_says_where_it_is_wrong(
    host_folder: HostFolder, body: dict[str, Any], why: str
) -> None:
    async def test(host: RunningHost) -> None:
        await make_doubt(store_of(host), "call/s/call-1234567")
        async with http_client(host) as ops:
            refused = await settle(ops, **body)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid")
            assert why in refused.json()["error"]["message"]
            assert len((await ops.get("/calls")).json()["calls"]) == 1

    run(host_folder, test)
