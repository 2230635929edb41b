"""What a service manager is told, where there is one: that the host is ready, alive, about to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Mapping

_log = logging.getLogger(__name__)


class Supervisor:
    """The socket that systemd names in NOTIFY_SOCKET; without one, nothing is told to nobody."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        # A name that begins with @ stands for one that is no file.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._pulse = _pulse(environ)

    def ready(self, status: str) -> None:
        """Sessions can be opened."""
        self._tell("READY=1", f"STATUS={status}")

    def stopping(self, seconds: float) -> None:
        """No more sessions; the host has so long to let go of those it has."""
        self._tell("STOPPING=1", f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}", "STATUS=draining")

    async def stay_alive(self) -> None:
        """Say again and again that the loop runs; returns where nobody asks for that."""
        while self._address and self._pulse:
            self._tell("WATCHDOG=1")
            await asyncio.sleep(self._pulse / 2)

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaking:
                # A manager that does not listen must not hold up the conversations.
                speaking.setblocking(False)
                speaking.connect(self._address)
                speaking.send("\n".join(lines).encode())
        except OSError as error:
            _log.warning("the service manager cannot be told %s: %s", lines[0], error)


def _pulse(environ: Mapping[str, str]) -> float:
    """How many seconds may pass between two signs of life; 0 where none are asked for."""
    meant_for = environ.get("WATCHDOG_PID", "")
    asked = environ.get("WATCHDOG_USEC", "")
    if not asked.isdecimal() or (meant_for and meant_for != str(os.getpid())):
        return 0.0
    return int(asked) / 1e6
