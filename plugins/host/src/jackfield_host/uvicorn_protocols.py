"""uvicorn's HTTP and WebSocket protocols, with bounds on slow and silent clients.

uvicorn leaves these bounds to a reverse proxy. ASGI middleware sees a request only when its head is complete;
until then an endless head would fill the memory and a missing one would hold its connection.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from uvicorn._types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

HEAD_LIMIT = 65_536
"""Maximum bytes of a request line and headers; one read from the socket may exceed it."""

HEAD_SECONDS = 20.0
"""How long a head may take, from the connection or from its first byte."""

PING_SECONDS = 20.0
"""The interval between pings, and how long a client may take to answer one."""

CLOSE_ANSWER_SECONDS = 5.0
"""How long a client may take to answer a close frame."""

FLUSH_SECONDS = 2.0
"""How long a finished connection may take to send its last data."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 with bounds on the size and time of a head; `uvicorn.Config(http=BoundedHttpProtocol)`."""

    head_limit = HEAD_LIMIT
    head_seconds = HEAD_SECONDS

    _head_size = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request."""
        super().connection_made(transport)
        self._start_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._end_head()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start the timer at the first byte of a request."""
        super().on_message_begin()
        self._start_head()

    def on_headers_complete(self) -> None:
        """Stop the timer when the head of a request is complete."""
        self._end_head()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head."""
        self._head_size += len(data)
        super().data_received(data)
        if self._head_timer and self._head_size > self.head_limit:
            self._refuse(b"431 Request Header Fields Too Large")

    def _start_head(self) -> None:
        if self._head_timer is None:
            self._head_size = 0
            self._head_timer = self.loop.call_later(self.head_seconds, self._refuse, b"408 Request Timeout")

    def _end_head(self) -> None:
        if self._head_timer:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: bytes) -> None:
        self._end_head()
        if self.transport.is_closing():
            return
        # Nothing is written into a response to an earlier request on this connection.
        earlier: RequestResponseCycle | None = self.cycle
        if earlier is None or earlier.response_complete:
            self.transport.write(
                b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        self.transport.close()


class BoundedWebSocketProtocol(WebSocketsSansIOProtocol):
    """WebSockets that close in bounded time; `uvicorn.Config(ws=BoundedWebSocketProtocol)`.

    A client that reads nothing cannot keep its connection open.
    """

    _abort_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set how long the client may take to answer a close."""
        super().connection_made(transport)
        self.close_timeout = CLOSE_ANSWER_SECONDS

    def keepalive_timeout(self) -> None:
        """Abort the connection of a client that did not answer a ping."""
        super().keepalive_timeout()
        self._abort_within(FLUSH_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        super().connection_lost(exc)

    async def run_asgi(self) -> None:
        """Serve the connection, then make sure that it is closed."""
        self.app = partial(self._call_app, self.app)
        await super().run_asgi()
        # If a close frame was sent, uvicorn's timer gives the client time to answer it.
        self._abort_within(FLUSH_SECONDS + (self.close_timeout if self.close_timer else 0.0))

    async def _call_app(self, app: Any, scope: Scope, receive: Any, send: Any) -> None:
        """Call the application; a denied handshake counts as complete."""
        await app(scope, receive, send)
        # uvicorn itself would log that the handshake was never answered.
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True

    def _abort_within(self, seconds: float) -> None:
        # A transport closes when everything is written; a client that does not read could delay that forever.
        if self._abort_timer is None and not self.disconnected:
            self._abort_timer = self.loop.call_later(seconds, self.transport.abort)
