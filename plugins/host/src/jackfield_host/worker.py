"""One of several worker processes that serve a port together: its connection to the parent, and its server.

The worker obeys its parent, not the terminal: the first signal drains it, and only the parent stops it at
once. It ends when the parent is gone: otherwise nothing would restart or stop it, and it would keep the port
in use.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any, NamedTuple

import uvicorn
from jackfield.host_reports import MAX_NAME

from jackfield_host.host import Host
from jackfield_host.notifications import StatusNotifier
from jackfield_host.settings import HostSettings
from jackfield_host.uvicorn_server import Server, bind_socket

DRAIN, STOP = "drain", "stop"
"""The parent's messages to a worker: stop gracefully, or at once."""

READY, ALIVE = "ready", "alive"
"""A worker's messages to its parent."""

ORPHANED = 3
"""The exit status of a worker whose parent is gone."""


class ParentConnection(StatusNotifier):
    """The worker's end of the socket to its parent."""

    def __init__(self, connection: socket.socket, number: int, watchdog_seconds: float = 0.0) -> None:
        """`number` is the number of the worker, counted from 1."""
        self.number = number
        self.watchdog_seconds = watchdog_seconds
        self._connection = connection
        self._stop: Callable[[bool], None] | None = None
        # In a separate thread, so that the worker ends even if its event loop is blocked.
        threading.Thread(target=self._read, name="parent", daemon=True).start()

    def report_ready(self, summary: dict[str, Any]) -> None:
        """Report that this worker is serving."""
        self._tell(READY, summary)

    def on_stop(self, stop: Callable[[bool], None]) -> None:
        """Set what to call when the parent asks this worker to stop; the argument is True for at once."""
        self._stop = stop

    def alive(self) -> None:
        """Notify the parent's watchdog."""
        self._tell(ALIVE)

    def _send(self, *lines: str) -> None:
        """Do nothing: the parent notifies the service manager for all workers."""

    def _tell(self, word: str, content: Any = None) -> None:
        try:
            self._connection.sendall(json.dumps([word, content]).encode() + b"\n", socket.MSG_DONTWAIT)
        except OSError:
            # The parent is gone, which the thread notices, or it hangs; neither can be reported to it.
            return

    def _read(self) -> None:
        with self._connection.makefile("r", encoding="ascii") as lines:
            for line in lines:
                stop = self._stop
                if stop is None:
                    # This worker is not serving yet, so there is nothing to drain.
                    os._exit(0)
                stop(line.strip() == STOP)
        os._exit(ORPHANED)


class WorkerServer(Server):
    """A server that its parent process stops."""

    def __init__(
        self, config: uvicorn.Config, host: Host, on_ready: Callable[[int], None], parent: ParentConnection
    ) -> None:
        super().__init__(config, host, on_ready, parent)
        self._parent = parent

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Drain at any signal: Ctrl-C in a terminal reaches the parent and every worker."""
        loop = asyncio.get_running_loop()

        def stop(at_once: bool) -> None:
            loop.call_soon_threadsafe(self._stop_at_once if at_once else self.request_stop)

        def handle(_: int, __: FrameType | None) -> None:
            stop(False)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, handle)
        self._parent.on_stop(stop)
        yield

    def _stop_at_once(self) -> None:
        self.request_stop()
        self.handle_exit(signal.SIGTERM, None)


class Worker(NamedTuple):
    """The port of a worker process, and its connection to the parent."""

    port: int
    """The port that the parent has reserved."""
    parent: ParentConnection

    def bind_socket(self, options: HostSettings) -> socket.socket:
        """Return this worker's own socket on the common port."""
        return bind_socket(options, shared=True)

    def settings(self, options: HostSettings) -> HostSettings:
        """Return the settings of this worker: the common port, and its own name."""
        suffix = f"-{self.parent.number}"
        # Without a name, each process makes one with a random suffix.
        name = options.name[: MAX_NAME - len(suffix)] + suffix if options.name else None
        return replace(options, port=self.port, name=name)

    def create_server(self, config: uvicorn.Config, host: Host, on_ready: Callable[[int], None]) -> Server:
        """Return the server of this worker."""
        return WorkerServer(config, host, on_ready, self.parent)
