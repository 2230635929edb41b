"""uvicorn's HTTP and WebSocket protocols, with bounds on slow and silent clients.

uvicorn leaves these bounds to a reverse proxy. ASGI middleware sees a request only when its head is complete;
until then, an endless head would fill the memory, and a head that never arrives would keep its connection
open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from jackfield.transport.websocket_frames import BINARY, FrameSplitter, frame_head, payload_start
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import OPEN

try:
    from websockets.speedups import apply_mask
except ImportError:
    from websockets.utils import apply_mask

HEAD_LIMIT = 65_536
"""Maximum bytes of a request line and headers; one read from the socket may exceed it."""

HEAD_SECONDS = 20.0
"""How long a head may take to arrive, from the start of the connection or from its first byte."""

PING_SECONDS = 20.0
"""The interval between pings, and how long a client may take to answer one."""

CLOSE_ANSWER_SECONDS = 5.0
"""How long a client may take to answer a close frame."""

FLUSH_SECONDS = 2.0
"""How long a finished connection may take to send its last data."""

MAX_WAITING = 4
"""How many audio frames may wait for the application before the client is no longer read."""

BINARY_EXTENSION = "jackfield.binary"
"""The ASGI extension of a WebSocket: under the key `open`, a function that returns its `BinaryWriter`."""

BinaryWriter = Callable[[bytes], bool]
"""Writes a binary message; returns False, without an effect, if it has to be sent as an ASGI message."""


def open_binary_shortcut(scope: Mapping[str, Any]) -> BinaryWriter | None:
    """Let binary messages bypass the parser in both directions; return their writer.

    Call it before the handshake is accepted. Returns None if another server serves the connection.
    """
    extension = scope.get("extensions", {}).get(BINARY_EXTENSION)
    return None if extension is None else extension["open"]()


class JoinedWrites:
    """The transport of one response, which sends the head together with the beginning of the body.

    uvicorn writes them one after the other, and uvloop sends every write at once: two packets, for each of
    which the kernel wakes the client.
    """

    __slots__ = ("_head", "_loop", "_started", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self._started = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write data after the head; a head without a body waits until this iteration of the loop is over."""
        if self._started:
            self._transport.write(self._head + data if self._head else data)
            self._head = b""
            return
        self._started, self._head = True, data
        self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Close the transport after everything is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            self._transport.write(self._head)
            self._head = b""


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
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            # The application starts later, so nothing was written yet.
            self.cycle.transport = JoinedWrites(self.transport, self.loop)  # type: ignore[assignment]

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

    Audio takes a shortcut in both directions, if the application opens it: a complete binary message bypasses
    the parser of `websockets`, which is written as nested generators, and no object is created for its frame.
    Everything else passes through the parser, frame by frame.
    """

    _abort_timer: asyncio.TimerHandle | None = None
    _shortcut = False
    _early = False
    _splitter: FrameSplitter | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set how long the client may take to answer a close."""
        super().connection_made(transport)
        self.close_timeout = CLOSE_ANSWER_SECONDS

    def data_received(self, data: bytes) -> None:
        """Pass audio to the application at once, and every other frame to the parser."""
        if self._splitter is None:
            self._early = self._early or (self.handshake_initiated and not self.handshake_complete)
            # A client that does not wait for the handshake may have sent a part of a frame.
            if not self._shortcut or self._early or self.conn.state is not OPEN:
                super().data_received(data)
                return
            self._splitter = FrameSplitter(self.config.ws_max_size, masked=True)
        for message, frame in self._splitter.split(data):
            if message == BINARY and self.conn.state is OPEN:
                start = payload_start(frame)
                self._receive_binary(apply_mask(frame[start:], frame[start - 4 : start]))
                continue
            super().data_received(frame)
            if self.transport.is_closing():
                return

    def _receive_binary(self, data: bytes) -> None:
        """Queue audio for the application; stop reading if it is behind."""
        if self.close_sent:
            return
        self.queue.put_nowait({"type": "websocket.receive", "bytes": data})
        # uvicorn would pause and resume reading for every message, which costs two system calls.
        if not self.read_paused and self.queue.qsize() > MAX_WAITING:
            self.read_paused = True
            self.transport.pause_reading()

    def open_binary_shortcut(self) -> BinaryWriter:
        """Pass on binary messages without the parser from now on; return a writer for the other direction."""
        self._shortcut = True
        return self.write_binary

    def write_binary(self, data: bytes) -> bool:
        """Write a binary message, unless the connection is not open or its buffer is full."""
        if self.close_sent or self.disconnected or not self.writable.is_set() or self.conn.state is not OPEN:
            return False
        self.transport.write(frame_head(BINARY, len(data)) + data)
        return True

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

    async def _call_app(self, app: Any, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Call the application; a denied handshake counts as complete."""
        scope["extensions"][BINARY_EXTENSION] = {"open": self.open_binary_shortcut}
        await app(scope, receive, send)
        # uvicorn itself would log that the handshake was never answered.
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True

    def _abort_within(self, seconds: float) -> None:
        # A transport closes when everything is written; a client that does not read could delay that forever.
        if self._abort_timer is None and not self.disconnected:
            self._abort_timer = self.loop.call_later(seconds, self.transport.abort)
