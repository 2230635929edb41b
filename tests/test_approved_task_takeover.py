"""Approved tasks of a host that dies or pauses, on a store in two PostgreSQL databases: one outcome."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from jackfield.settings import Settings
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit.command_server import StartedCommand, start_command
from jackfield_testkit.postgres import PostgresServer
from process_environment import clean_environ
from provider_sessions import PLUGINS, tools
from test_agent_takeover import (
    READS,
    REPORT,
    Agents,
    events_of,
    free_port,
    is_ready,
    open_session,
    start,
    task_ends,
)

ALLOW = (*PLUGINS, "jackfield-capability-agents", "jackfield-store-postgres", "jackfield-tool-task")

SETTINGS = """\
provider = "openai"
store = "postgres"
allow = {allow}

[transports.openai]
base_url = "{base_url}"
api_key_env = "FAB_KEY"

[stores.postgres]
lease = 2

[capabilities.agents]
tools = ["fab_note"]

[host]
port = {port}
name = "{name}"
"""

ID = "task-that-was-approved"


@pytest.fixture
def databases() -> Iterator[str]:
    """The addresses of two databases, as the environment variable of the store has them."""
    with PostgresServer.temporary() as server:
        yield " ".join(server.create_database(name) for name in ("north", "south"))


class Hosts:
    """Host processes on one store, and the provider that their agents use."""

    def __init__(self, served: OpenAIServer, site: Path, databases: str) -> None:
        self._served = served
        self._environ = {
            **clean_environ(),
            "PYTHONPATH": str(site),
            "FAB_KEY": "k",
            "JACKFIELD_POSTGRES_SHARDS": databases,
        }

    async def create_store(self) -> None:
        config = self._config("north", 0)
        await self._end(await self._command("store", "create", "--config", str(config)))

    @asynccontextmanager
    async def host(self, name: str) -> AsyncIterator[tuple[Any, httpx.AsyncClient]]:
        """Run a host in a process of its own."""
        port = free_port()
        process = await self._command("serve", "--config", str(self._config(name, port)))
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
                async with asyncio.timeout(120):
                    while not await is_ready(client):
                        assert process.returncode is None
                        await asyncio.sleep(0.05)
                yield process, client
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    def _config(self, name: str, port: int) -> Path:
        config = Path(f"{name}.toml")
        text = SETTINGS.format(
            allow=json.dumps(list(ALLOW)), base_url=self._served.base_url, port=port, name=name
        )
        config.write_text(text)
        return config

    async def _command(self, *arguments: str) -> StartedCommand:
        return await start_command(
            [*arguments],
            env=self._environ, stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip

    @staticmethod
    async def _end(process: StartedCommand) -> None:
        assert await process.wait() == 0


@asynccontextmanager
async def deployment(site: Any, folder: Path, agents: Agents, databases: str) -> AsyncIterator[Hosts]:
    """Build the registry, create the store, and run the provider."""
    tools(site, folder / "log.txt")
    settings = Settings(allow=ALLOW, store="postgres", provider="openai")
    built = build(settings, import_handlers=False)
    assert built.snapshot, built.findings
    write_snapshot(built.snapshot, settings.registry)
    async with OpenAIServer(*[agents] * 4) as served:
        hosts = Hosts(served, site.folder, databases)
        await hosts.create_store()
        yield hosts


async def approve(client: httpx.AsyncClient, token: str) -> asyncio.Task[httpx.Response]:
    """Start a task, which needs the user's approval, and approve it."""
    asked = (await start(client, token, ID, READS)).json()
    card = asked["confirmation"]
    sent = client.post(
        f"/confirmations/{card['token']}", json={"approve": True}, headers={"Jackfield-Session": token}
    )
    return asyncio.create_task(sent)


@pytest.mark.parametrize("fault", ["killed", "paused"])
def test_an_approved_task_of_a_host_that_is_gone_is_continued_with_one_outcome(
    fault: str, site: Any, tmp_path: Path, databases: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")

    async def main() -> None:
        agents = Agents(waiting=1)
        async with AsyncExitStack() as stack:
            hosts = await stack.enter_async_context(deployment(site, tmp_path, agents, databases))
            (first, one), (_, other) = await asyncio.gather(
                *(stack.enter_async_context(hosts.host(name)) for name in ("north", "south"))
            )
            token = await open_session(one)
            approving = await approve(one, token)
            await agents.until_started(1)
            first.send_signal(signal.SIGKILL if fault == "killed" else signal.SIGSTOP)
            try:
                # The user has approved it once, which is enough.
                done = await task_ends(other, ID, token)
            finally:
                if fault == "paused":
                    first.send_signal(signal.SIGCONT)
            assert (done["state"], done["data"]["report"]) == ("done", REPORT)
            if fault == "paused":
                agents.may_report.set()
                assert (await approving).json()["envelope"]["data"] == done["data"]
            else:
                with pytest.raises(httpx.HTTPError):
                    await approving
            events = await events_of(other, ID, token)
            assert [each["type"] for each in events if each["type"] == "tool_complete"] == ["tool_complete"]
            assert agents.started.count("reads") == 2

    asyncio.run(main())
