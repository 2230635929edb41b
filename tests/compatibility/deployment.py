"""A deployment of the golden plugin and the golden tools, as published."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

GOLDEN = Path(__file__).with_name("golden")
SITE = GOLDEN / "site"
REGISTRY = GOLDEN / "registry-format-1.json"
REGISTRIES = (REGISTRY, GOLDEN / "registry-format-1-distributions.json")
"""The registry as first built, and as built since registries record whole distributions."""
PATIENCE = 60.0
"""Timeout of a wait in seconds."""

BESIDES = "jackfield-policies,jackfield-host"
"""Distributions that the deployment has installed as well."""


def environ(**more: str) -> dict[str, str]:
    """Return the environment of a process in which only the golden distributions and tools are installed."""
    # No byte code next to the golden files.
    fixed = {
        "PYTHONPATH": str(SITE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "JACKFIELD_ALLOW": f"golden-*,{BESIDES}",
    }
    return {**os.environ, **fixed, **more}


def jackfield(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a `jackfield` command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "jackfield_cli", *arguments],
        cwd=folder, env=environ(**more), capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip


class Host:
    """A host in its own process."""

    def __init__(self, url: str, process: asyncio.subprocess.Process) -> None:
        self.url = url
        self._process = process

    def stop(self) -> None:
        """Drain and stop the host."""
        self._process.send_signal(signal.SIGTERM)

    @asynccontextmanager
    async def line(self, mode: str, *subprotocols: str) -> AsyncIterator[RawClient]:
        """Open a WebSocket without sending anything."""
        address = f"{self.url.replace('http', 'ws', 1)}/ws/{mode}"
        offered = [Subprotocol(each) for each in subprotocols or ("jackfield.1",)]
        async with connect(
            address, origin=Origin(self.url), subprotocols=offered, compression=None, proxy=None
        ) as socket:
            yield RawClient(socket)


class RawClient:
    """A client that sends raw frames and keeps those it receives."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.told: list[dict[str, Any]] = []
        self.sound = b""

    async def say(self, **frame: Any) -> None:
        """Send one frame."""
        await self.socket.send(json.dumps(frame))

    async def until(self, wanted: str | Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read up to a frame of a type, or a matching one."""
        while True:
            frame = await self.socket.recv()
            if isinstance(frame, bytes):
                self.sound += frame
                continue
            read: dict[str, Any] = json.loads(frame)
            self.told.append(read)
            if wanted(read) if callable(wanted) else read["type"] == wanted:
                return read


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Host]:
    """Build the registry and serve it with the golden transport."""
    built = jackfield(folder, "build")
    assert built.returncode == 0, built.stderr
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "jackfield_cli", "serve", "--port", "0", "--provider", "golden",
        cwd=folder, env=environ(JACKFIELD_STORE="memory"),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE):
            yield Host(await _address(process), process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stdout
    said = ""
    async for line in process.stdout:
        said += line.decode()
        if found := re.search(r"Open (\S+)", said):
            return found[1].rstrip("/")
    raise AssertionError(said)
