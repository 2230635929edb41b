"""Clients that keep their connections open and send the same request again and again.

The benchmark counts the server's CPU time only, so these do no more than needed: a request is bytes, and of a
response only its length is parsed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple


class Response(NamedTuple):
    """The response to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the JSON in the body; of server-sent events, that of the last one."""
        text = self.body.decode()
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            text = [line for line in text.splitlines() if line.startswith("data:")][-1].removeprefix("data:")
        return json.loads(text)


class Connection:
    """One connection to a server on this machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, request: bytes) -> Response:
        """Send a request and return its response."""
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in fields}
        return Response(int(head[0].split()[1]), headers, await self._body(headers))

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await self._reader.readexactly(int(headers.get("content-length", "0")))
        chunks = []
        while size := int(await self._reader.readline(), 16):
            chunks.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readline()
        return b"".join(chunks)


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    """Open a connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


def post(port: int, path: str, content: Any, headers: Mapping[str, str] | None = None) -> bytes:
    """Return the bytes of a request with JSON."""
    body = json.dumps(content).encode()
    lines = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body


async def load(port: int, requests: Sequence[bytes], times: int) -> None:
    """Send each request many times; every request has a connection of its own, and all are busy at once."""

    async def client(request: bytes) -> None:
        async with connected(port) as connection:
            for _ in range(times):
                response = await connection.send(request)
                if response.status != 200:
                    raise ConnectionError(f"the server answered {response.status}: {response.body[:200]!r}")

    await asyncio.gather(*map(client, requests))
