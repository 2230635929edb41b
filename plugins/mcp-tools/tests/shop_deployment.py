"""A deployment whose registry contains the tools of the shop's MCP server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

from jackfield import ToolCall, ToolResponse
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.settings import Settings
from jackfield_builder.pipeline import BuildResult, build
from jackfield_builder.snapshot import write_snapshot
from shop_forks import SERVER, ForkedShop, forked_command

READS = {"category": "retrieval"}
READING = ("get_price", "report", "picture", "pictures", "change", "read_meta", "survey", "compose", "sound")
ALLOW = ("jackfield-mcp-tools", "jackfield-policies")


class Shop:
    """The server's folder, and the settings of the deployment."""

    def __init__(self, folder: Path, era: str = "new", **server: Any) -> None:
        self.folder = folder
        self.allow: tuple[str, ...] = ALLOW
        self.deployment: Literal["development", "production"] = "development"
        self._era = era
        self.server: dict[str, Any] = {
            "command": forked_command(folder, era),
            "tools": dict.fromkeys(READING, READS),
            **server,
        }

    def use_new_python(self) -> None:
        """Start the server as a new Python, as users do, and not as a fork."""
        self.server["command"] = (sys.executable, str(SERVER), str(self.folder), self._era)

    @property
    def settings(self) -> Settings:
        capability = {"servers": {"shop": self.server}, "folder": str(self.folder / "files")}
        return Settings(
            allow=self.allow,
            deployment=self.deployment,
            store="memory",
            registry=self.folder / "tool_registry.json",
            tables={"capabilities": {"mcp": capability}},
        )

    def build(self) -> BuildResult:
        """Build without writing."""
        return build(self.settings, import_handlers=False)

    def freeze(self) -> None:
        """Build and write the registry."""
        built = self.build()
        assert built.snapshot, [str(finding) for finding in built.findings]
        write_snapshot(built.snapshot, self.settings.registry)

    def redefine(self, **tools: Mapping[str, Any]) -> None:
        """Change what the server says about its tools."""
        (self.folder / "definitions.json").write_text(json.dumps(tools))

    def journal(self) -> list[str]:
        """Return what the server wrote, without the lines about its starts."""
        file = self.folder / "journal.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if not line.startswith("started")]

    def processes(self) -> list[int]:
        """Return the process ids of the server, the oldest first."""
        lines = (self.folder / "journal.txt").read_text().splitlines()
        return [int(line.split()[1]) for line in lines if line.startswith("started")]

    def kill(self) -> None:
        """Kill the server's last process."""
        os.kill(self.processes()[-1], signal.SIGKILL)

    @asynccontextmanager
    async def host(self) -> AsyncIterator[Host]:
        """Start a runtime on the frozen registry."""
        runtime = await Runtime.start(self.settings)
        try:
            events: list[tuple[str, dict[str, Any]]] = []

            def publish(event: str, fields: Any, *, once: bool = False) -> None:
                events.append((event, dict(fields)))

            session = await runtime.open_session("text", user="ada", publish=publish)
            yield Host(runtime, session, events)
        finally:
            await runtime.close()


class Host:
    """A runtime with one session."""

    def __init__(self, runtime: Runtime, session: Session, events: list[tuple[str, dict[str, Any]]]) -> None:
        self.runtime = runtime
        self.session = session
        self.events = events
        self._calls = 0

    @property
    def servers(self) -> Any:
        return self.runtime.capabilities["mcp"]

    async def call(self, tool: str, call_id: str = "", **args: Any) -> ToolResponse:
        """Call a tool in a turn of its own; a call that asks is approved."""
        self._calls += 1
        await self.runtime.begin_turn(self.session)
        request = ToolCall(f"shop__{tool}", json.dumps(args), call_id or f"call-{self._calls:08}")
        async with asyncio.timeout(30):
            (result,) = await self.runtime.orchestrator.handle(self.session, [request])
            failure = result.response.failure
            if failure and failure.confirmation_request:
                cards = [fields for event, fields in self.events if event == "confirmation_required"]
                token = cards[-1]["token"]
                done = await self.runtime.resolve_confirmation(self.session, token, approve=True)
                assert done is not None
                result = done
        return result.response

    async def until_withheld(self, tool: str) -> str:
        """Wait until a tool is withheld, and return the reason."""
        await until(lambda: f"shop__{tool}" in self.runtime.registry.withheld)
        return self.runtime.registry.withheld[f"shop__{tool}"]


async def until(condition: Any) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the condition is in another process
            await asyncio.sleep(0.01)


@contextmanager
def http_shop(
    folder: Path, era: str = "new", *, new_python: bool = False, **environment: str
) -> Iterator[HttpShop]:
    """Serve the shop over HTTP, in a fork or in a new Python."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shop = HttpShop(folder, era, port, environment, new_python=new_python)
    shop.start()
    try:
        yield shop
    finally:
        shop.stop()


class HttpShop:
    """The shop's server over HTTP, which can be stopped and started again."""

    def __init__(
        self, folder: Path, era: str, port: int, environment: dict[str, str], *, new_python: bool
    ) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self._port = port
        self._arguments = [str(folder), era, str(port)]
        self._environment = {**os.environ, **environment}
        self._start = NewPythonShop if new_python else ForkedShop
        self._process: NewPythonShop | ForkedShop | None = None

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        self._process = self._start(self._arguments, self._environment)
        while not self._process.has_ended():
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.01)
        raise RuntimeError("the server ended")

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process = None


class NewPythonShop:
    """A shop in a new Python, with the interface of `ForkedShop`."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen([sys.executable, str(SERVER), *arguments], env=environment)

    def has_ended(self) -> bool:
        """Return whether the shop has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill the shop, and wait until it has ended."""
        self._process.kill()
        self._process.wait()
