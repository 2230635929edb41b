"""The application: paths, what stands in front of them, and what lives as long as it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from jackfield.runtime import Runtime
from jackfield.settings import Settings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route, WebSocketRoute

from jackfield_host.endpoints.sockets import TextSocket, VoiceSocket
from jackfield_host.house import House
from jackfield_host.options import HostOptions
from jackfield_host.security.allowances import Allowances
from jackfield_host.security.gate import Gate
from jackfield_host.security.headers import SecurityHeaders
from jackfield_host.security.limits import SizeLimits
from jackfield_host.talks.switchboard import Switchboard

ROUTES: list[Route | WebSocketRoute] = [
    WebSocketRoute("/ws/text", TextSocket()),
    WebSocketRoute("/ws/voice", VoiceSocket()),
]


@asynccontextmanager
async def opened(settings: Settings, options: HostOptions) -> AsyncIterator[House]:
    """A house with everything it needs; what cannot be served stops it with a sentence."""
    gate = Gate(options)
    runtime = await Runtime.start(settings)
    try:
        transport = runtime.transport()
        try:
            switchboard = Switchboard(runtime, transport, settings, options)
            rate = options.requests_per_minute / 60
            yield House(options, gate, switchboard, Allowances(rate, max(1.0, rate * 10)))
        finally:
            await transport.close()
    finally:
        await runtime.close()


def application(house: House) -> Starlette:
    """The ASGI application of a house."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(house.switchboard.watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            await house.switchboard.close()

    app = Starlette(
        routes=ROUTES,
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(SizeLimits, body=house.options.request_bytes),
        ],
        lifespan=lifespan,
    )
    app.state.house = house
    return app
