"""Real hosts for the client's tests: in this process, or in one that can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from jackfield.settings import Settings
from jackfield_host.settings import HostSettings
from jackfield_host.uvicorn_server import serve_embedded
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit.command_server import StartedCommand, start_command
from jackfield_testkit.site_packages import SitePackages

TIMEOUT = 120.0
FROZEN = (
    "cli-*", "jackfield-policies", "jackfield-store-sqlite",
    "jackfield-transport-openai",
)  # fmt: skip
ALLOW = (*FROZEN, "jackfield-client", "jackfield-host")

HANDLER = """\
import asyncio
import os
from pathlib import Path

from jackfield import ok


async def execute(args, ctx):
    log = Path(os.environ["CLI_FOLDER"]) / "log.txt"
    await ctx.progress("half of it", fraction=0.5)
    await asyncio.sleep({seconds})
    with log.open("a") as file:
        file.write(f"{tool} {{args['text']}}\\n")
    return ok({{"words": len(args["text"].split()), "seconds": 1}})
"""


def create_site(folder: Path) -> Path:
    """Create the tools of these tests and their registry in a folder."""
    writes: dict[str, Any] = {"category": "action", "sideEffects": "writes", "idempotent": False}
    site = SitePackages(folder)
    _tool(site, "cli_look")
    _tool(site, "cli_slow", seconds=30)
    _tool(site, "cli_book", **writes, requiresConfirmation=True, preview="Book {text}?")
    site.frozen(*FROZEN, name="registry.json")
    return folder


def _tool(site: SitePackages, tool: str, seconds: float = 0.0, **fields: Any) -> None:
    handler = HANDLER.format(tool=tool, seconds=seconds)
    site.tool(tool, distribution=f"cli-{tool.replace('_', '-')}", schema=fields, handler=handler)


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Deployment:
    """A working folder with settings for hosts and clients."""

    folder: Path
    site: Path

    def configure(self, provider: OpenAIServer | str, **host: Any) -> Path:
        """Write the settings file; `host` is the table of that name."""
        base_url = provider if isinstance(provider, str) else provider.base_url
        values: dict[str, dict[str, Any]] = {
            "transports.openai": {"base_url": base_url, "api_key_env": "CLI_KEY", "retries": 0},
            "stores.sqlite": {"path": str(self.folder / "jackfield.db")},
            "host": host,
        }
        top = {"provider": "openai", "registry": str(self.site / "registry.json"), "allow": list(ALLOW)}
        lines = [f"{name} = {json.dumps(value)}" for name, value in top.items()]
        for table, entries in values.items():
            lines.append(f"[{table}]")
            lines += [f"{name} = {json.dumps(value)}" for name, value in entries.items()]
        path = self.folder / "jackfield.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    @asynccontextmanager
    async def host(self, provider: OpenAIServer | str, **options: Any) -> AsyncIterator[str]:
        """Run a host in this process; yield its URL."""
        settings = Settings.load(self.configure(provider))
        async with serve_embedded(settings, HostSettings.load({}, port=0, **options)) as url:
            yield url

    def effects(self) -> list[str]:
        """Return the lines that the tools have logged."""
        log = self.folder / "log.txt"
        return log.read_text().splitlines() if log.exists() else []


class HostProcess:
    """A host in its own process, always on the same port."""

    def __init__(self, deployment: Deployment, provider: OpenAIServer, **options: Any) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._deployment = deployment
        deployment.configure(provider, port=self.port, **options)
        self._process: StartedCommand | None = None

    async def start(self) -> None:
        """Start the host and wait until it accepts connections."""
        with (self._deployment.folder / "host.log").open("ab") as output:
            self._process = await start_command(
                ["serve"],
                cwd=self._deployment.folder, stdout=output, stderr=output,
            )  # fmt: skip
        async with asyncio.timeout(TIMEOUT):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    return
                assert self._process.returncode is None, (self._deployment.folder / "host.log").read_text()
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """Kill the host with SIGKILL."""
        assert self._process
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.returncode is None:
            await self.kill()


class Command:
    """A command in its own process, with a terminal or a pipe as its input."""

    def __init__(self, process: StartedCommand, write: Callable[[bytes], None]) -> None:
        self.process = process
        self.write = write
        self.output = ""

    async def until(self, words: str, after: int = 0) -> int:
        """Wait until the output contains a text; return the position after it."""
        assert self.process.stdout
        while (position := self.output.find(words, after)) < 0:
            try:
                async with asyncio.timeout(TIMEOUT):
                    chunk = await self.process.stdout.read(4096)
            except TimeoutError:
                raise AssertionError(f"no {words!r} in the output: {self.output[after:]}") from None
            assert chunk, f"the command ended without {words!r}: {self.output}"
            self.output += chunk.decode()
        return position + len(words)

    async def wait_exit(self) -> int:
        """Wait for the end of the command; return its exit status."""
        assert self.process.stdout
        async with asyncio.timeout(TIMEOUT):
            self.output += (await self.process.stdout.read()).decode()
            return await self.process.wait()


@asynccontextmanager
async def at_terminal(folder: Path, *arguments: str) -> AsyncIterator[Command]:
    """Run `jackfield ...` at a terminal; its output is one stream."""
    import pty

    master, slave = pty.openpty()
    process = await start_command(
        [*arguments],
        cwd=folder, stdin=slave, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    os.close(slave)
    try:
        yield Command(process, lambda data: (os.write(master, data), None)[1])
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(master)


async def command(folder: Path, *arguments: str, lines: str = "") -> tuple[int, str, str]:
    """Run `jackfield ...` with lines from a pipe; return exit status, output and errors."""
    process = await start_command(
        [*arguments],
        cwd=folder, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(process.communicate(lines.encode()), TIMEOUT)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode(), err.decode()
