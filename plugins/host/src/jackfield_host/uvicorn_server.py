"""The uvicorn server: sockets, signals and graceful drain."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from jackfield.settings import Settings, SettingsError, SettingsFaults

from jackfield_host import uvicorn_protocols
from jackfield_host.app import create_app, open_host
from jackfield_host.host import Host
from jackfield_host.notifications import StatusNotifier, SystemdNotifier
from jackfield_host.settings import HostSettings
from jackfield_host.validators import preload_validators

if TYPE_CHECKING:
    from jackfield_host.development.reloader import Reloader
    from jackfield_host.worker import Worker

_log = logging.getLogger(__name__)

UNACKNOWLEDGED_MS = 30_000
"""The operating system closes the connection of a peer that acknowledges nothing for this long."""

MAX_PORT = 65535

KEEP_ALIVE_SECONDS = 75
"""How long a connection may wait for its next request.

A request that arrives while the connection closes is lost, and only the client can know whether to repeat it.
So clients and proxies should close first: many HTTP clients do so after 5 seconds, nginx after 60.
"""

CLOSE_SECONDS = 5
"""How long connections may take to close after the last session was released."""

EXIT_SECONDS = 5.0
"""How long a tool that blocks its thread may delay the exit of the process."""

FORCED_EXIT_SECONDS = 1.0
"""How long such a tool may delay the exit after a second signal."""


class Server(uvicorn.Server):
    """A uvicorn server that drains its sessions before it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        host: Host,
        on_ready: Callable[[int], None] | None = None,
        notifier: StatusNotifier | None = None,
    ) -> None:
        """`on_ready` is called with the port as soon as clients can connect."""
        super().__init__(config)
        self.status = 0
        """The exit status of the process."""
        self._host = host
        self._on_ready = on_ready
        self._notifier = notifier or SystemdNotifier()
        self._drain_task: asyncio.Task[None] | None = None
        self._watchdog: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and report that the host is ready."""
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        if self._on_ready is not None:
            self._on_ready(port)
        self._notifier.ready(f"listening on {self._host.options.address}:{port}")
        self._watchdog = asyncio.create_task(self._notifier.run_watchdog())

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while serving. Unlike uvicorn, do not raise them again after a drain."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()

        def handle(sig: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self.handle_exit, sig, frame)

        before = {sig: signal.signal(sig, handle) for sig in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def request_stop(self) -> None:
        """Drain and stop, as at the first signal."""
        if self._drain_task is None:
            self.handle_exit(signal.SIGTERM, None)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal; stop at once at the second."""
        if self._drain_task is not None:
            _log.warning("second signal: stopping now")
            self.status = 128 + sig
            self.force_exit = True
            exit_after(FORCED_EXIT_SECONDS, self.status)
            super().handle_exit(sig, frame)
            return
        self._drain_task = asyncio.create_task(self._drain(sig, frame))

    async def _drain(self, sig: int, frame: FrameType | None) -> None:
        sessions = self._host.sessions
        _log.info(
            "draining: no new sessions, running tools finish; sessions to release: %d", len(sessions.live)
        )
        self._notifier.stopping(self._host.options.drain_seconds + CLOSE_SECONDS + EXIT_SECONDS)
        try:
            await sessions.drain()
            _log.info("drained")
        except Exception:  # noqa: BLE001 - the host has to stop in any case
            self.status = 1
            _log.exception("draining failed")
        finally:
            super().handle_exit(sig, frame)


class EmbeddedServer(Server):
    """A server inside a program that handles signals itself."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program."""
        yield


def exit_after(seconds: float, status: int) -> None:
    """End the process after a delay, even if threads still run; nothing that was acknowledged is lost."""
    timer = threading.Timer(seconds, os._exit, (status,))
    timer.daemon = True
    timer.start()


def bind_socket(options: HostSettings, *, shared: bool = False) -> socket.socket:
    """Create and bind the socket to listen on; with `shared`, several processes may listen on the port."""
    family = socket.AF_INET6 if ":" in options.address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Accepted sockets inherit it: a peer that neither reads nor disconnects is closed.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    try:
        listener.bind((options.address, options.port))
    except OSError as error:
        listener.close()
        raise SettingsError(_bind_error(options, error)) from None
    return listener


def _bind_error(options: HostSettings, error: OSError) -> str:
    place = f"[host] port: cannot listen on {options.address}:{options.port}"
    if error.errno != errno.EADDRINUSE:
        return f"{place}: {error.strerror}; choose a different `port` or `address`"
    other = options.port + 1 if options.port < MAX_PORT else 0
    return (
        f"{place}: the port is in use, perhaps by another host; stop that program, or "
        f"choose a different port: jackfield serve --port {other}"
    )


def uvicorn_config(app: Any, options: HostSettings) -> uvicorn.Config:
    """Return uvicorn's configuration for a host."""
    return uvicorn.Config(
        app,
        http=uvicorn_protocols.BoundedHttpProtocol,
        ws=uvicorn_protocols.BoundedWebSocketProtocol,
        loop="auto",
        ws_max_size=options.message_bytes,
        ws_per_message_deflate=False,
        ws_ping_interval=uvicorn_protocols.PING_SECONDS,
        ws_ping_timeout=uvicorn_protocols.PING_SECONDS,
        proxy_headers=bool(options.proxies),
        forwarded_allow_ips=list(options.proxies) or None,
        server_header=False,
        access_log=options.access_log,
        log_config=None,
        lifespan="on",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=CLOSE_SECONDS,
    )


async def serve(
    settings: Settings,
    options: HostSettings,
    on_ready: Callable[[Host, int], None] | None = None,
    faults: SettingsFaults | None = None,
    *,
    certain: bool = True,
    prepare: Callable[[], Awaitable[Reloader]] | None = None,
    worker: Worker | None = None,
) -> int:
    """Serve until a signal arrives; return the exit status of the process.

    `prepare` returns a development loop, which runs while the host serves. `worker` says that this process is
    one of several that serve a port together.
    """
    reloader = await prepare() if prepare is not None else None
    development = reloader.status if reloader is not None else None
    async with AsyncExitStack() as closing:
        host = await closing.enter_async_context(
            open_host(
                settings,
                options,
                faults,
                certain=certain,
                development=development,
                one_of_several=worker is not None,
            )
        )
        listener = bind_socket(options) if worker is None else worker.bind_socket(options)

        def ready(port: int) -> None:
            if on_ready is not None:
                on_ready(host, port)
            preloading = preload_validators(and_then=gc.freeze)
            closing.push_async_callback(_cancel, asyncio.create_task(preloading))
            if reloader is not None:
                closing.push_async_callback(_cancel, asyncio.create_task(_watch(reloader, host, server)))

        create_server = Server if worker is None else worker.create_server
        server = create_server(uvicorn_config(create_app(host), options), host, ready)
        # Objects created at startup live as long as the process. Each full collection that scanned them
        # would delay every call and every audio frame by some 50 ms.
        gc.freeze()
        gc.enable()
        await server.serve(sockets=[listener])
        if server.force_exit:
            # uvicorn skips this when it is forced to exit; background tasks have to end too.
            await server.lifespan.shutdown()
    return server.status


async def _watch(reloader: Reloader, host: Host, server: Server) -> None:
    """Run the development loop; the host continues if the loop fails."""
    try:
        await reloader.run(host, server.request_stop)
    except Exception:  # noqa: BLE001 - for example, the system allows no more watches
        _log.exception("changes are no longer watched; restart `jackfield dev`")


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def run(
    settings: Settings,
    options: HostSettings,
    on_ready: Callable[[Host, int], None] | None = None,
    faults: SettingsFaults | None = None,
    *,
    certain: bool = True,
    prepare: Callable[[], Awaitable[Reloader]] | None = None,
    worker: Worker | None = None,
) -> int:
    """Serve on a new event loop, uvloop if installed; return the exit status of the process."""
    loop_factory = uvicorn.Config("", loop="auto", log_config=None).get_loop_factory()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        status = runner.run(
            serve(settings, options, on_ready, faults, certain=certain, prepare=prepare, worker=worker)
        )
        exit_after(EXIT_SECONDS, status)
    return status


@asynccontextmanager
async def serve_embedded(
    settings: Settings, options: HostSettings, faults: SettingsFaults | None = None, *, certain: bool = True
) -> AsyncIterator[str]:
    """Serve a host on the running event loop while the block lasts; yield its URL."""
    async with open_host(settings, options, faults, certain=certain) as host:
        listener = bind_socket(options)
        name = f"[{options.address}]" if ":" in options.address else options.address
        url = f"http://{name}:{listener.getsockname()[1]}"
        started = asyncio.Event()
        server = EmbeddedServer(uvicorn_config(create_app(host), options), host, lambda _: started.set())
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        serving.add_done_callback(lambda _: started.set())
        await started.wait()
        try:
            yield url
        finally:
            await host.sessions.drain()
            server.should_exit = True
            await serving
