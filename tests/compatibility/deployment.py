"""A deployment of the golden plugin and the golden tools, as they were published."""

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
"""As it was first built, and as it is built since registries record whole distributions."""
PATIENCE = 60.0
"""Seconds after which a test that waits says that it waited in vain."""

BESIDES = "jackfield-policies,jackfield-host"
"""What a deployment has installed besides."""


def environ(**more: str) -> dict[str, str]:
    """The environment of a process in which the golden distributions are installed, and no other tools."""
    # Byte code beside the golden files would be in the way of nobody, but does not belong there.
    fixed = {
        "PYTHONPATH": str(SITE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "JACKFIELD_ALLOW": f"golden-*,{BESIDES}",
    }
    return {**os.environ, **fixed, **more}


def jackfield(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `jackfield` in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "jackfield_cli", *arguments],
        cwd=folder, env=environ(**more), capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip


class Host:
    """A host in a process of its own."""

    def __init__(self, url: str, process: asyncio.subprocess.Process) -> None:
        self.url = url
        self._process = process

    def stop(self) -> None:
        """Tell it to drain and to end."""
        self._process.send_signal(signal.SIGTERM)

    @asynccontextmanager
    async def line(self, mode: str, *subprotocols: str) -> AsyncIterator[Line]:
        """A WebSocket, with nothing said yet."""
        address = f"{self.url.replace('http', 'ws', 1)}/ws/{mode}"
        offered = [Subprotocol(each) for each in subprotocols or ("jackfield.1",)]
        async with connect(
            address, origin=Origin(self.url), subprotocols=offered, compression=None, proxy=None
        ) as socket:
            yield Line(socket)


class Line:
    """A client that sends frames as they are and keeps what comes."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.told: list[dict[str, Any]] = []
        self.sound = b""

    async def say(self, **frame: Any) -> None:
        """Send one frame."""
        await self.socket.send(json.dumps(frame))

    async def until(self, wanted: str | Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read up to a frame of a type, or one that fits."""
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
