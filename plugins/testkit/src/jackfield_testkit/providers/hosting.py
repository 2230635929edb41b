"""A server on the loopback in the caller's event loop, over TLS or without, which can also send in crumbs."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from websockets.exceptions import InvalidState

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HOST = "127.0.0.1"
_GRACE = 0.5
"""Seconds that open connections have to end when the server does."""


class Hosted(NamedTuple):
    """A server that is up."""

    port: int
    server: uvicorn.Server

    def drop(self) -> None:
        """Break every connection, as a network that fails does."""
        for connection in list(self.server.server_state.connections):
            connection.transport.abort()


@asynccontextmanager
async def hosting(
    app: ASGIApp, *, certificate: Path | None = None, port: int = 0, split: int = 0, delay: float = 0.0
) -> AsyncIterator[Hosted]:
    """Serve; with `split`, in pieces of so many bytes, `delay` seconds apart."""
    # By its full name: on a socket of protocol 0 asyncio sets no TCP_NODELAY, and small answers wait 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((HOST, port))
    config = uvicorn.Config(
        app,
        http=_crumbling(split, delay) if split else H11Protocol,
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        ssl_certfile=certificate,
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        yield Hosted(listener.getsockname()[1], server)
    finally:
        await _end(server)
        listener.close()


async def _end(server: uvicorn.Server) -> None:
    """Let connections finish for a moment, then drop them; uvicorn's own way waits in steps of 100 ms."""
    state = server.server_state
    for each in server.servers:
        each.close()
    for connection in list(state.connections):
        # A socket whose closing handshake is under way cannot be closed again.
        with suppress(InvalidState):
            connection.shutdown()
    end = time.monotonic() + _GRACE
    while (state.connections or state.tasks) and time.monotonic() < end:  # noqa: ASYNC110 - of uvicorn
        await asyncio.sleep(0.002)
    Hosted(0, server).drop()
    for task in list(state.tasks):
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)
    for each in server.servers:
        await each.wait_closed()


def _crumbling(split: int, delay: float) -> type[H11Protocol]:
    class Crumbling(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(_Crumbs(transport, split, delay))  # type: ignore[arg-type]

    return Crumbling


class _Crumbs:
    """A transport that hands what is written on in small pieces."""

    def __init__(self, transport: asyncio.Transport, split: int, delay: float) -> None:
        self._transport = transport
        self._split = split
        self._delay = delay
        self._waiting = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Take it all, send the first piece."""
        self._waiting += data
        if self._timer is None:
            self._send()

    def close(self) -> None:
        """Close when all pieces are sent."""
        self._closing = True
        if not self._waiting:
            self._transport.close()

    def is_closing(self) -> bool:
        """Whether no more is taken."""
        return self._closing or self._transport.is_closing()

    def _send(self) -> None:
        self._timer = None
        if self._transport.is_closing():
            self._waiting.clear()
            return
        piece = bytes(self._waiting[: self._split])
        del self._waiting[: self._split]
        self._transport.write(piece)
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(self._delay, self._send)
        elif self._closing:
            self._transport.close()
