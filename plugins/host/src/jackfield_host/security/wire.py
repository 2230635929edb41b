"""A bound on the head of a request while it arrives, which uvicorn leaves to a proxy in front of it.

An ASGI middleware sees a request when its head is complete; until then one that never ends would fill the
memory, and one that never comes would hold its connection.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_LIMIT = 65_536
"""Bytes of a request line and headers, beyond what one read from the socket brings."""

HEAD_SECONDS = 20.0
"""How long a head may take, from the connection or from its first byte."""


class BoundedHttp(HttpToolsProtocol):
    """HTTP/1.1 by httptools, with heads of bounded size and time; `uvicorn.Config(http=BoundedHttp)`."""

    head_limit = HEAD_LIMIT
    head_seconds = HEAD_SECONDS

    _head = 0
    _awaited: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected, and owes a request."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """A client is gone."""
        self._head_done()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The first byte of a request is here."""
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        """The head of a request is complete."""
        self._head_done()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Some bytes are here."""
        self._head += len(data)
        super().data_received(data)
        if self._awaited and self._head > self.head_limit:
            self._end(b"431 Request Header Fields Too Large")

    def _await_head(self) -> None:
        if self._awaited is None:
            self._head = 0
            self._awaited = self.loop.call_later(self.head_seconds, self._end, b"408 Request Timeout")

    def _head_done(self) -> None:
        if self._awaited:
            self._awaited.cancel()
            self._awaited = None

    def _end(self, status: bytes) -> None:
        self._head_done()
        if self.transport.is_closing():
            return
        # A response to an earlier request on this connection may be under way: nothing is written into it.
        earlier: RequestResponseCycle | None = self.cycle
        if earlier is None or earlier.response_complete:
            self.transport.write(
                b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        self.transport.close()
