"""One WebSocket of a Live client: the handshake of messages, and then the model's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from jackfield_testkit.providers.gemini.wording import camel


class LiveLine:
    """Messages in both directions; what is sent after the end is dropped."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._sending = asyncio.Lock()
        self.closed = False

    async def receive(self) -> dict[str, Any] | None:
        """The next message in camelCase; None at the end."""
        while True:
            try:
                frame = await self._socket.receive()
            except (WebSocketDisconnect, RuntimeError):
                return None
            if frame["type"] == "websocket.disconnect":
                self.closed = True
                return None
            try:
                message = orjson.loads(frame.get("text") or frame.get("bytes") or b"")
            except orjson.JSONDecodeError:
                message = None
            if isinstance(message, dict):
                made: dict[str, Any] = camel(message)
                return made
            await self.close(1007, "Request contains an invalid argument.")

    async def send(self, message: Mapping[str, Any]) -> None:
        """A message, in a binary frame, as Google's server sends them."""
        if self.closed:
            return
        async with self._sending:
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                await self._socket.send_bytes(orjson.dumps(message))

    async def close(self, code: int, reason: str) -> None:
        """End the connection."""
        if not self.closed and self._socket.client_state is WebSocketState.CONNECTED:
            self.closed = True
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                await self._socket.close(code, reason)
