"""WebSockets by uvicorn, which end when they should: a client that reads nothing cannot hold one open."""

from __future__ import annotations

import asyncio

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

PING_SECONDS = 20.0
"""A client is asked so often whether it is still there, and has as long to answer."""

ANSWER_SECONDS = 5.0
"""How long a client that was told of the close may take to answer it."""

LINGER_SECONDS = 2.0
"""How long what was written last may take to go out before a connection that is over is cut."""


class ReapingWebSocket(WebSocketsSansIOProtocol):
    """`uvicorn.Config(ws=ReapingWebSocket)`: closing does not wait for whoever does not read."""

    _cutting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        super().connection_made(transport)
        self.close_timeout = ANSWER_SECONDS

    def keepalive_timeout(self) -> None:
        """The client has not said that it is still there."""
        super().keepalive_timeout()
        self._cut_within(LINGER_SECONDS)

    async def send(self, message: ASGISendEvent) -> None:
        """Send something of the application's; a handshake that was refused in words is complete as well."""
        await super().send(message)
        # By itself the server takes it for one that was never answered, and says so in the log.
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if self._cutting is not None:
            self._cutting.cancel()
        super().connection_lost(exc)

    async def run_asgi(self) -> None:
        """Serve the connection; once that is done, nothing of it stays."""
        await super().run_asgi()
        # A client that was told why has a while to answer; uvicorn has a timer for that.
        self._cut_within(LINGER_SECONDS + (self.close_timeout if self.close_timer else 0.0))

    def _cut_within(self, seconds: float) -> None:
        # By itself a transport closes when everything is written, which may be never.
        if self._cutting is None and not self.disconnected:
            self._cutting = self.loop.call_later(seconds, self.transport.abort)
