"""Hosts on free ports, in this process or in one of their own, for the harnesses of several plugins."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from jackfield.settings import Settings
from jackfield_host.app import create_app, open_host
from jackfield_host.host import Host
from jackfield_host.settings import HostSettings
from jackfield_host.uvicorn_server import Server, bind_socket, uvicorn_config
from jackfield_store_sqlite.creation import initialise
from jackfield_testkit.command_server import StartedCommand, start_command

PATIENCE = 60.0
"""How many seconds a test waits for an event before it fails."""


class _QuietServer(Server):
    """A server that leaves signals to the test runner."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@asynccontextmanager
async def served_host(
    settings: Settings, *, send_buffer: int = 0, **options: Any
) -> AsyncIterator[tuple[int, Host]]:
    """Run a host in this process, on a free port; `send_buffer` limits the system's buffer for a client."""
    _place_empty_store(settings)
    async with open_host(settings, HostSettings.load({"port": 0, **options}, {})) as host:
        listener = bind_socket(host.options)
        if send_buffer:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        server = _QuietServer(uvicorn_config(create_app(host), host.options), host)
        serving = asyncio.create_task(server.serve([listener]))
        while not server.started:
            if serving.done():
                serving.result()
            await asyncio.sleep(0.005)
        try:
            yield listener.getsockname()[1], host
        finally:
            server.should_exit = True
            await serving


def _place_empty_store(settings: Settings) -> None:
    """Copy an empty store to where a development host would create one, which waits for the disk many times.

    Hosts in processes of their own create their stores themselves.
    """
    table = settings.tables.get("stores", {}).get("sqlite", {})
    if settings.store != "sqlite" or settings.deployment != "development" or {*table} != {"path"}:
        return
    path = Path(table["path"])
    if path.parent.is_dir() and not [*path.parent.glob(f"{path.name}*")]:
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(_empty_store())


@cache
def _empty_store() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        initialise(path)
        assert [*Path(folder).iterdir()] == [path]
        return path.read_bytes()


class ServingProcess:
    """A host in a process of its own, which a test can kill."""

    def __init__(
        self, port: int, folder: Path, config: Path, environ: Mapping[str, str], *, command: str = "serve"
    ) -> None:
        self._port = port
        self._folder = folder
        self._arguments = (command, "--config", str(config))
        self._environ = environ
        self._process: StartedCommand | None = None
        self.output = folder / f"host-{port}.log"

    async def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        with self.output.open("ab") as output:
            self._process = await start_command(
                self._arguments, cwd=self._folder, env=self._environ,
                stdout=output, stderr=output,
            )  # fmt: skip
        async with asyncio.timeout(PATIENCE * 2):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self._port)
                    writer.close()
                    return
                assert self._process.returncode is None, self.output.read_text()
                await asyncio.sleep(0.02)

    async def kill(self, with_signal: signal.Signals = signal.SIGKILL) -> int:
        """Kill the process, by default as a power cut would; return its exit status."""
        assert self._process
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(with_signal)
        return await self._process.wait()

    async def ended(self) -> int:
        """Wait until the process has ended by itself; return its exit status."""
        assert self._process
        async with asyncio.timeout(PATIENCE * 2):
            return await self._process.wait()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process
        return self._process.pid

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.returncode is None:
            await self.kill()


async def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(PATIENCE * 2):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)
