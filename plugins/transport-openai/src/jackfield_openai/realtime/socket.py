"""The WebSocket of a Realtime session: complete messages take a shortcut past the parser of `websockets`.

The parser consists of nested generators and creates an object for every frame; the SDK acquires locks for
every message that it sends. Both cost more than the audio itself, fifty times a second in each direction. The
SDK still opens and closes the connection, and `websockets` still handles everything but complete messages.
"""

from __future__ import annotations

import asyncio
from secrets import token_bytes

from jackfield.transport.websocket_frames import TEXT, FrameSplitter, frame_head, payload_start
from websockets.asyncio.client import ClientConnection
from websockets.frames import OP_BINARY, OP_TEXT, Frame
from websockets.protocol import OPEN

try:
    from websockets.speedups import apply_mask
except ImportError:
    from websockets.utils import apply_mask

MAX_MESSAGE_BYTES = 1 << 24

_HEAD_END = b"\r\n\r\n"
_WAKE = Frame(OP_TEXT, b"")


class RealtimeWebSocket(ClientConnection):
    """A client's connection; `websockets.connect(create_connection=RealtimeWebSocket)`."""

    _head: bytes | None = b""
    """The part of the server's handshake response that has arrived; None once it is complete."""
    _splitter: FrameSplitter | None = None

    def data_received(self, data: bytes) -> None:
        """Queue complete messages, and pass every other frame to the parser."""
        if self._head is not None:
            data = self._finish_head(data)
        if self._splitter is None:
            if data:
                super().data_received(data)
            return
        for message, frame in self._splitter.split(data):
            if message and self.protocol.state is OPEN:
                kind = OP_TEXT if message == TEXT else OP_BINARY
                self.recv_messages.put(Frame(kind, frame[payload_start(frame) :]))
            else:
                super().data_received(frame)

    def _finish_head(self, data: bytes) -> bytes:
        """Pass the handshake response to the parser; return the bytes that follow it."""
        before = len(self._head or b"")
        head = (self._head or b"") + data
        end = head.find(_HEAD_END)
        if end < 0:
            self._head = head
            super().data_received(data)
            return b""
        self._head = None
        end += len(_HEAD_END) - before
        super().data_received(data[:end])
        if self.protocol.state is OPEN:
            self._splitter = FrameSplitter(MAX_MESSAGE_BYTES, masked=False)
        return data[end:]

    async def send_message(self, text: bytes) -> None:
        """Send a text message; raises `ConnectionClosed` if the connection is not open."""
        if self.protocol.state is not OPEN or self.fragmented_send_waiter is not None:
            await self.send(text, text=True)
            return
        key = token_bytes(4)
        self.transport.write(frame_head(TEXT, len(text), masked=True) + key + apply_mask(text, key))
        if self.paused or self.transport.is_closing():
            await self.drain()

    def wake(self) -> None:
        """Wake the receiver with an empty message."""
        if not self.recv_messages.closed:
            self.recv_messages.put(_WAKE)


class WakeTimer:
    """Wakes a socket's receiver at a time that seldom changes, without a new timer for every message."""

    def __init__(self, socket: RealtimeWebSocket) -> None:
        self._socket = socket
        self._at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, at: float | None) -> None:
        """Wake the receiver at this time on the loop's clock."""
        if at == self._at:
            return
        self.cancel()
        if at is not None:
            self._at = at
            self._timer = asyncio.get_running_loop().call_at(at, self._wake)

    def cancel(self) -> None:
        """Cancel the wake-up."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._at = None

    def _wake(self) -> None:
        self._timer = self._at = None
        self._socket.wake()
