"""What a Realtime server sends."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from starlette.websockets import WebSocket, WebSocketState

from jackfield_testkit.providers.openai.violations import Violations, error_body


class RealtimeWire:
    """The server's end of one socket; what is sent after its end is dropped, as on a real one."""

    def __init__(self, socket: WebSocket, violations: Violations) -> None:
        self._socket = socket
        self._violations = violations
        self._number = 0
        self._lock = asyncio.Lock()
        self.closed = False

    def new_id(self, prefix: str) -> str:
        """An id that this connection has not used."""
        self._number += 1
        return f"{prefix}_{self._number:06}"

    async def send(self, kind: str, **fields: Any) -> None:
        """One server event."""
        if self.closed:
            return
        body = {"type": kind, "event_id": self.new_id("event"), **fields}
        async with self._lock:
            try:
                await self._socket.send_text(orjson.dumps(body).decode())
            except (RuntimeError, OSError, asyncio.CancelledError):
                self.closed = True
                raise
            except Exception:  # noqa: BLE001 - however the client left, there is nobody to tell
                self.closed = True

    async def refuse(self, code: str, message: str, event_id: str | None = None) -> None:
        """Say that a message of the client was wrong."""
        self._violations.note(code, message)
        await self.send("error", error=error_body(code, message, event_id=event_id))

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """End the connection."""
        if not self.closed and self._socket.application_state is WebSocketState.CONNECTED:
            self.closed = True
            await self._socket.close(code, reason)
