"""The server: sockets, signals, and an end that leaves nobody behind."""

from __future__ import annotations

import asyncio
import logging
import socket
from types import FrameType
from typing import Any

import uvicorn
from jackfield.settings import Settings, SettingsError

from jackfield_host.app import application, opened
from jackfield_host.house import House
from jackfield_host.options import HostOptions
from jackfield_host.security.wire import BoundedHttp

_log = logging.getLogger(__name__)

PING_SECONDS = 20.0
"""A client is asked so often whether it is still there, and has as long to answer."""

UNACKNOWLEDGED_MS = 30_000
"""A peer that takes nothing for so long is given up by the kernel of the system."""


class Server(uvicorn.Server):
    """A uvicorn that hands its sessions on before it stops."""

    def __init__(self, config: uvicorn.Config, house: House) -> None:
        super().__init__(config)
        self._house = house
        self._draining: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, the second ends."""
        if self._draining is not None or self._house.switchboard.draining:
            _log.warning("told to stop again: stopping now")
            self.force_exit = True
            super().handle_exit(sig, frame)
            return
        loop = asyncio.get_running_loop()
        self._draining = loop.create_task(self._drain(sig, frame))

    async def _drain(self, sig: int, frame: FrameType | None) -> None:
        _log.info("told to stop: no new sessions, running tools finish")
        try:
            await self._house.switchboard.drain()
        finally:
            super().handle_exit(sig, frame)


def listening(options: HostOptions) -> socket.socket:
    """The socket to accept on."""
    family = socket.AF_INET6 if ":" in options.address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Accepted sockets inherit it: a peer that neither reads nor goes away is not waited for.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    try:
        listener.bind((options.address, options.port))
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"[host] {options.address}:{options.port} cannot be listened on: {error.strerror}; "
            "choose another `port` or `address`"
        ) from None
    return listener


def configured(app: Any, options: HostOptions) -> uvicorn.Config:
    """How uvicorn runs the application."""
    return uvicorn.Config(
        app,
        http=BoundedHttp,
        ws="websockets-sansio",
        loop="auto",
        ws_max_size=options.message_bytes,
        ws_per_message_deflate=False,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        proxy_headers=bool(options.proxies),
        forwarded_allow_ips=list(options.proxies) or None,
        server_header=False,
        access_log=False,
        log_config=None,
        lifespan="on",
        timeout_graceful_shutdown=5,
    )


async def serve(settings: Settings, options: HostOptions) -> None:
    """Serve until told to stop."""
    async with opened(settings, options) as house:
        listener = listening(options)
        server = Server(configured(application(house), options), house)
        await server.serve(sockets=[listener])
