"""Background agents of a host that dies: another host continues those that only read, with one outcome."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest
from jackfield.settings import Settings
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit.command_server import StartedCommand, start_command
from process_environment import clean_environ
from provider_sessions import PLUGINS, tools

WITH_AGENTS = (*PLUGINS, "jackfield-capability-agents", "jackfield-store-sqlite", "jackfield-tool-task")

SETTINGS = """\
provider = "openai"
store = "sqlite"
allow = {allow}

[transports.openai]
base_url = "{base_url}"
api_key_env = "FAB_KEY"

[stores.sqlite]
lease = 2

[capabilities.agents]
tools = ["fab_note"]

[policies.confirmation]
trusted = ["task", "fab_note"]

[host]
port = {port}
name = "{name}"
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def write_settings(name: str, base_url: str, port: int) -> Path:
    config, allow = Path(f"{name}.toml"), json.dumps(list(WITH_AGENTS))
    config.write_text(SETTINGS.format(allow=allow, base_url=base_url, port=port, name=name))
    return config


@asynccontextmanager
async def host(name: str, base_url: str, site: Path) -> AsyncIterator[tuple[Any, httpx.AsyncClient]]:
    """Run a host in a process of its own; all of them share the store in the working folder."""
    port = free_port()
    config = write_settings(name, base_url, port)
    process = await start_command(
        ["serve", "--config", str(config)],
        env={**clean_environ(), "PYTHONPATH": str(site), "FAB_KEY": "k"},
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            async with asyncio.timeout(60):
                while not await is_ready(client):
                    assert process.returncode is None
                    await asyncio.sleep(0.05)
            yield process, client
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def is_ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/health/ready")).status_code == 200
    except httpx.TransportError:
        return False


async def task_of(client: httpx.AsyncClient, call_id: str, token: str) -> dict[str, Any]:
    found = (await client.get(f"/tasks/{call_id}", headers={"Jackfield-Session": token})).json()
    assert "error" not in found or "state" in found, found
    return dict(found)


REPORT = "Rooms are booked at the desk."

READS: dict[str, Any] = {"title": "Rooms", "instructions": "Find out about rooms.", "tools": ["fab_look"]}
"""A task whose agent can only read."""

WRITES: dict[str, Any] = {"title": "Notes", "instructions": "Write notes."}
"""A task whose agent has all tools, one of which writes."""


class Agents:
    """The models of agents: those that work for a host that is to die wait for permission to report."""

    def __init__(self, waiting: int) -> None:
        """`waiting` is how many agents that read wait; the next one reports at once."""
        self.started: list[str] = []
        self.may_report = asyncio.Event()
        self._waiting = waiting
        self._news = asyncio.Condition()

    async def __call__(self, model: ScriptedModel) -> None:
        asked = (await model.hears()).text
        kind = "reads" if READS["instructions"] in asked else "writes"
        waits = kind == "writes" or self.started.count("reads") < self._waiting
        # Before it has the result, the server would take the next agent's request for a part of this one.
        await model.calls(ScriptedCall("fab_look", {"text": "rooms"}))
        async with self._news:
            self.started.append(kind)
            self._news.notify_all()
        if waits:
            await self.may_report.wait()
        await model.says(REPORT)

    async def until_started(self, count: int) -> None:
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: len(self.started) >= count)


@asynccontextmanager
async def deployment(site: Any, folder: Path, agents: Agents) -> AsyncIterator[OpenAIServer]:
    """Build the registry, and run the provider that the agents of all hosts use."""
    tools(site, folder / "log.txt")
    settings = Settings(allow=WITH_AGENTS, store="sqlite", provider="openai")
    built = build(settings, import_handlers=False)
    assert built.snapshot, built.findings
    write_snapshot(built.snapshot, settings.registry)
    async with OpenAIServer(*[agents] * 6) as served:
        yield served


async def open_session(client: httpx.AsyncClient) -> str:
    return str((await client.post("/execute/fab_look", json={"arguments": {"text": "a"}})).json()["token"])


def start(
    client: httpx.AsyncClient, token: str, call_id: str, arguments: dict[str, Any]
) -> asyncio.Task[httpx.Response]:
    body = {"arguments": arguments, "call_id": call_id}
    sent = client.post("/execute/task", json=body, headers={"Jackfield-Session": token})
    return asyncio.create_task(sent)


async def task_ends(client: httpx.AsyncClient, call_id: str, token: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        found = await task_of(client, call_id, token)
        while found["state"] in ("running", "in_doubt"):
            await asyncio.sleep(0.2)
            found = await task_of(client, call_id, token)
    return found


async def pause(process: StartedCommand, store: Path) -> None:
    """Stop a host; one that is stopped during a transaction would lock the store for all hosts."""
    async with asyncio.timeout(60):
        process.send_signal(signal.SIGSTOP)
        while not await asyncio.to_thread(can_write, store):
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.01)
            process.send_signal(signal.SIGSTOP)


def can_write(store: Path) -> bool:
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READWRITE)
    # Longer than a transaction of another host takes.
    connection.set_busy_timeout(500)
    try:
        connection.execute("BEGIN IMMEDIATE; ROLLBACK")
    except apsw.BusyError:
        return False
    finally:
        connection.close()
    return True


async def events_of(client: httpx.AsyncClient, call_id: str, token: str) -> list[dict[str, Any]]:
    """Return the events of a call; its outcome and everything before a later call of the session."""
    marked = {"arguments": {"text": "end"}, "call_id": "the-end-of-the-events"}
    headers = {"Jackfield-Session": token}
    await client.post("/execute/fab_look", json=marked, headers=headers)
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(60), client.stream("GET", "/events", headers=headers) as response:
        async for line in response.aiter_lines():
            event = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
            if event.get("callId") == marked["call_id"]:
                break
            if event.get("callId") == call_id:
                found.append(event)
    return found


def outcomes(events: list[dict[str, Any]]) -> list[str]:
    return [each["type"] for each in events if each["type"] in ("tool_complete", "tool_error")]


def test_a_task_that_only_reads_is_continued_each_time_its_host_is_killed(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")

    async def main() -> None:
        agents = Agents(waiting=2)
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(deployment(site, tmp_path, agents))

            async def begin(name: str) -> tuple[Any, httpx.AsyncClient]:
                return await stack.enter_async_context(host(name, served.base_url, site.folder))

            (first, one), (second, other) = await asyncio.gather(begin("north"), begin("south"))
            reader, writer = await open_session(one), await open_session(one)
            running = [
                start(one, reader, "task-that-only-reads", READS),
                start(one, writer, "task-that-may-write", WRITES),
            ]
            await agents.until_started(2)
            # The limit of two agents per user holds for all hosts.
            refused = (await start(other, await open_session(other), "one-task-too-many", READS)).json()
            assert refused["envelope"]["error"]["type"] == "RATE_LIMIT", refused

            first.kill()
            await asyncio.gather(*running, return_exceptions=True)
            # The agents of the dead host still count, and the one that continues replaces its own.
            await agents.until_started(3)
            assert (await task_of(other, "task-that-only-reads", reader))["state"] == "running"
            _, third = await begin("west")
            second.kill()
            done = await task_ends(third, "task-that-only-reads", reader)
            assert (done["state"], done["data"]["report"]) == ("done", REPORT)

            events = await events_of(third, "task-that-only-reads", reader)
            assert outcomes(events) == ["tool_complete"]
            progress = [each["message"] for each in events if each["type"] == "tool_progress"]
            assert sum("another host continues" in each for each in progress) == 2, progress

            # An agent that may have changed something is never continued.
            assert (await task_of(third, "task-that-may-write", writer))["state"] == "in_doubt"
            (listed,) = (await third.get("/calls")).json()["calls"]
            assert (listed["tool"], listed["callId"]) == ("task", "task-that-may-write")
            assert agents.started.count("writes") == 1
            assert agents.started.count("reads") == 3

    asyncio.run(main())


def test_a_host_that_was_paused_returns_the_outcome_of_the_host_that_took_over(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")

    async def main() -> None:
        agents = Agents(waiting=1)
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(deployment(site, tmp_path, agents))
            (first, one), (_, other) = await asyncio.gather(
                *(
                    stack.enter_async_context(host(name, served.base_url, site.folder))
                    for name in ("north", "south")
                )
            )
            token = await open_session(one)
            running = start(one, token, "task-of-a-paused-host", READS)
            await agents.until_started(1)
            await pause(first, tmp_path / "jackfield.db")
            try:
                done = await task_ends(other, "task-of-a-paused-host", token)
            finally:
                first.send_signal(signal.SIGCONT)
            assert (done["state"], done["data"]["report"]) == ("done", REPORT)
            # The agent of the paused host reports too, but its host no longer holds the claim.
            agents.may_report.set()
            answered = (await running).json()["envelope"]["data"]
            assert answered == done["data"]
            assert outcomes(await events_of(other, "task-of-a-paused-host", token)) == ["tool_complete"]

    asyncio.run(main())
