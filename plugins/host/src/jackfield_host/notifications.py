"""Notifications from a host to the process that started it: ready, stopping, alive."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping

_log = logging.getLogger(__name__)


class StatusNotifier(ABC):
    """Sends notifications in the form that systemd defines (`man sd_notify`)."""

    watchdog_seconds: float = 0.0
    """How many seconds may pass between two notifications of the watchdog; 0 without a watchdog."""

    def ready(self, status: str) -> None:
        """Notify that the host accepts sessions."""
        self._send("READY=1", f"STATUS={status}")

    def stopping(self, seconds: float) -> None:
        """Notify that the host is stopping, and how long that may take."""
        self._send("STOPPING=1", f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}", "STATUS=draining")

    def alive(self) -> None:
        """Notify the watchdog."""
        self._send("WATCHDOG=1")

    async def run_watchdog(self) -> None:
        """Notify regularly that the event loop runs; return at once if there is no watchdog."""
        while self.watchdog_seconds:
            self.alive()
            await asyncio.sleep(self.watchdog_seconds / 2)

    @abstractmethod
    def _send(self, *lines: str) -> None:
        """Send one notification; never block, never raise."""


class SystemdNotifier(StatusNotifier):
    """Sends notifications to the socket in NOTIFY_SOCKET; a no-op if that is unset."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        # A name that begins with @ is an abstract socket.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self.watchdog_seconds = _watchdog_seconds(environ) if address else 0.0

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
                # A service manager that does not read must not block the sessions.
                connection.setblocking(False)
                connection.connect(self._address)
                connection.send("\n".join(lines).encode())
        except OSError as error:
            _log.warning("cannot notify the service manager of %s: %s", lines[0], error)


def _watchdog_seconds(environ: Mapping[str, str]) -> float:
    """Return how many seconds may pass between two notifications; 0 if systemd asks for none."""
    watched_pid = environ.get("WATCHDOG_PID", "")
    microseconds = environ.get("WATCHDOG_USEC", "")
    if not microseconds.isdecimal() or (watched_pid and watched_pid != str(os.getpid())):
        return 0.0
    return int(microseconds) / 1e6
