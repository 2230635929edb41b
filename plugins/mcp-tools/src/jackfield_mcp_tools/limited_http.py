"""Limits the size of a server's HTTP responses, and records what each response means for its call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import ContextVar

import httpx2


class Delivery:
    """The delivery of one call's request, as far as the host knows."""

    delivered = False
    """True if the server may have received and run the call.

    False if there was no connection, if the server did not know the session, or if it refused the
    credentials.
    """
    refused: int | None = None
    """The HTTP status of the last response, if the server refused the credentials."""


_NOT_FOUND = 404
_REFUSED = (401, 403)
_SESSION = "mcp-session-id"

DELIVERY: ContextVar[Delivery | None] = ContextVar("delivery", default=None)
"""The delivery of the call that a request belongs to; the SDK sends the request in the caller's context."""


class ResponseTooLargeError(httpx2.ReadError):
    """A response exceeds the limit."""


def limited_transport(limit: int, connection: Delivery) -> httpx2.AsyncBaseTransport:
    """Return a transport whose JSON responses have at most `limit` bytes.

    `connection` describes the last request, whichever call it belongs to.
    Event streams may last forever; the SDK limits the size of each event.
    """
    return _LimitedTransport(limit, connection)


class _LimitedTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, limit: int, connection: Delivery) -> None:
        super().__init__()
        self._limit = limit
        self._connection = connection

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        delivery = DELIVERY.get() or Delivery()
        delivery.delivered = True
        try:
            response = await super().handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            delivery.delivered = False
            self._connection.refused = delivery.refused = None
            raise
        if response.status_code == _NOT_FOUND and _SESSION in request.headers:
            # The status that the specification defines for an ended session, e.g. after a server restart.
            delivery.delivered = False
        # An OAuth client may repeat a refused request with a new token, so the last response counts.
        refused = response.status_code if response.status_code in _REFUSED else None
        self._connection.refused = delivery.refused = refused
        if refused:
            delivery.delivered = False
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        if not is_stream and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _LimitedStream(response.stream, self._limit)
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise ResponseTooLargeError(f"a response is larger than {self._limit} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
