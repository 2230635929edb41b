"""The server: sockets, signals, and an end that leaves nobody behind."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import uvicorn
from jackfield.settings import Settings, SettingsError, SettingsFaults

from jackfield_host.app import application, opened
from jackfield_host.house import House
from jackfield_host.lifecycle.supervisor import Supervisor
from jackfield_host.security.wire import BoundedHttp
from jackfield_host.settings import HostSettings
from jackfield_host.wire import reaping
from jackfield_host.wire.reaping import ReapingWebSocket

_log = logging.getLogger(__name__)

UNACKNOWLEDGED_MS = 30_000
"""A peer that takes nothing for so long is given up by the kernel of the system."""

LAST_PORT = 65535

CLOSE_SECONDS = 5
"""How long connections may take to close behind the last session."""

LEAVE_SECONDS = 5.0
"""A tool that blocks its thread may hold the process for so long after everything else has ended."""

HURRY_SECONDS = 1.0
"""The same for a host that was told to stop twice."""


class Server(uvicorn.Server):
    """A uvicorn that hands its sessions on before it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        house: House,
        announce: Callable[[int], None] | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        """`announce` is given the port as soon as it can be connected to."""
        super().__init__(config)
        self.status = 0
        """What the process should exit with."""
        self._house = house
        self._announce = announce
        self._supervisor = supervisor or Supervisor()
        self._draining: asyncio.Task[None] | None = None
        self._alive: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        if self._announce is not None:
            self._announce(port)
        self._supervisor.ready(f"listening on {self._house.options.address}:{port}")
        self._alive = asyncio.create_task(self._supervisor.stay_alive())

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Heed signals while serving. Unlike uvicorn's own, a drained host does not die of the signal."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()

        def heed(sig: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self.handle_exit, sig, frame)

        before = {sig: signal.signal(sig, heed) for sig in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, the second ends."""
        if self._draining is not None:
            _log.warning("told to stop again: stopping now")
            self.status = 128 + sig
            self.force_exit = True
            end_within(HURRY_SECONDS, self.status)
            super().handle_exit(sig, frame)
            return
        self._draining = asyncio.create_task(self._drain(sig, frame))

    async def _drain(self, sig: int, frame: FrameType | None) -> None:
        sessions = self._house.sessions
        held = len(sessions.live)
        _log.info("told to stop: no new sessions, running tools finish; sessions to hand on: %d", held)
        self._supervisor.stopping(self._house.options.drain_seconds + CLOSE_SECONDS + LEAVE_SECONDS)
        try:
            await sessions.drain()
            _log.info("drained")
        except Exception:  # noqa: BLE001 - whatever it is, the host has to stop
            self.status = 1
            _log.exception("draining failed")
        finally:
            super().handle_exit(sig, frame)


def end_within(seconds: float, status: int) -> None:
    """End the process, whatever still runs in a thread of it; nothing that was acknowledged is lost."""
    ending = threading.Timer(seconds, os._exit, (status,))
    ending.daemon = True
    ending.start()


def listening(options: HostSettings) -> socket.socket:
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
        raise SettingsError(_refused(options, error)) from None
    return listener


def _refused(options: HostSettings, error: OSError) -> str:
    place = f"[host] port: {options.address}:{options.port} cannot be listened on"
    if error.errno != errno.EADDRINUSE:
        return f"{place}: {error.strerror}; choose another `port` or `address`"
    other = options.port + 1 if options.port < LAST_PORT else 0
    return (
        f"{place}: something serves there already, perhaps another host; stop that, "
        f"or take another port: jackfield serve --port {other}"
    )


def configured(app: Any, options: HostSettings) -> uvicorn.Config:
    """How uvicorn runs the application."""
    return uvicorn.Config(
        app,
        http=BoundedHttp,
        ws=ReapingWebSocket,
        loop="auto",
        ws_max_size=options.message_bytes,
        ws_per_message_deflate=False,
        ws_ping_interval=reaping.PING_SECONDS,
        ws_ping_timeout=reaping.PING_SECONDS,
        proxy_headers=bool(options.proxies),
        forwarded_allow_ips=list(options.proxies) or None,
        server_header=False,
        access_log=options.access_log,
        log_config=None,
        lifespan="on",
        timeout_graceful_shutdown=CLOSE_SECONDS,
    )


async def serve(
    settings: Settings,
    options: HostSettings,
    announce: Callable[[House, int], None] | None = None,
    faults: SettingsFaults | None = None,
    *,
    certain: bool = True,
) -> int:
    """Serve until told to stop; the exit status of the process."""
    async with opened(settings, options, faults, certain=certain) as house:
        listener = listening(options)
        told = (lambda port: announce(house, port)) if announce else None
        server = Server(configured(application(house), options), house, told)
        # What is there by now stays: looking through it again and again would hold up every call and every
        # frame of sound for some 50 ms each time.
        gc.freeze()
        await server.serve(sockets=[listener])
        if server.force_exit:
            # uvicorn leaves this out when it is in a hurry; what runs beside the sessions has to end too.
            await server.lifespan.shutdown()
    return server.status


def run(
    settings: Settings,
    options: HostSettings,
    announce: Callable[[House, int], None] | None = None,
    faults: SettingsFaults | None = None,
    *,
    certain: bool = True,
) -> int:
    """Serve on an event loop of its own, the fastest there is; the exit status of the process."""
    loop_factory = uvicorn.Config("", loop="auto", log_config=None).get_loop_factory()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        status = runner.run(serve(settings, options, announce, faults, certain=certain))
        end_within(LEAVE_SECONDS, status)
    return status


class GuestServer(Server):
    """A server inside a program that has signals of its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program."""
        yield


@asynccontextmanager
async def running(
    settings: Settings, options: HostSettings, faults: SettingsFaults | None = None, *, certain: bool = True
) -> AsyncIterator[str]:
    """A host on the loop of this program for as long as the block lasts; its address."""
    async with opened(settings, options, faults, certain=certain) as house:
        listener = listening(options)
        name = f"[{options.address}]" if ":" in options.address else options.address
        url = f"http://{name}:{listener.getsockname()[1]}"
        started = asyncio.Event()
        server = GuestServer(configured(application(house), options), house, lambda _: started.set())
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        serving.add_done_callback(lambda _: started.set())
        await started.wait()
        try:
            yield url
        finally:
            await house.sessions.drain()
            server.should_exit = True
            await serving
