"""The application: paths, what stands in front of them, and what lives as long as it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from jackfield.settings import Settings, SettingsFaults
from jackfield_sessions.manager import SessionManager
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, WebSocketRoute

from jackfield_host.endpoints.console import file, page
from jackfield_host.endpoints.protocol import asyncapi
from jackfield_host.endpoints.sockets import TextSocket, VoiceSocket
from jackfield_host.errors import answered
from jackfield_host.house import House
from jackfield_host.lifecycle.checks import start_runtime
from jackfield_host.lifecycle.readiness import Readiness
from jackfield_host.openapi import OPERATIONS
from jackfield_host.operations.downloads import Downloads
from jackfield_host.operations.figures import Trend
from jackfield_host.operations.watchers import counting
from jackfield_host.security.allowances import Allowances
from jackfield_host.security.gate import Gate
from jackfield_host.security.headers import SecurityHeaders
from jackfield_host.security.limits import SizeLimits
from jackfield_host.settings import HostSettings

ROUTES: list[Route | WebSocketRoute] = [
    WebSocketRoute("/ws/text", TextSocket()),
    WebSocketRoute("/ws/voice", VoiceSocket()),
    Route("/asyncapi.json", asyncapi),
    Route("/", page),
    Route("/console/{path:path}", file),
    *(operation.route() for operation in OPERATIONS),
]

ALLOWED_HEADERS = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "Jackfield-Session",
    "Jackfield-Turn",
    "Last-Event-ID",
)
"""What a page of another origin may send, where that origin is allowed."""


@asynccontextmanager
async def opened(
    settings: Settings,
    options: HostSettings,
    faults: SettingsFaults | None = None,
    *,
    certain: bool = True,
) -> AsyncIterator[House]:
    """A house with everything it needs; one `SettingsError` reports every fault.

    `faults` are those that were found before; `certain` is false if keys of the settings file are faulty.
    """
    faults = SettingsFaults() if faults is None else faults
    async with AsyncExitStack() as closing:
        gate = faults.collect(lambda: Gate(options))
        runtime = await start_runtime(settings, faults, closing, certain=certain)
        assert gate is not None  # noqa: S101 - without faults there is one
        transport = runtime.transport()
        closing.push_async_callback(transport.close)
        sessions = SessionManager(runtime, transport, settings, options)
        rate = options.requests_per_minute / 60
        requests = Allowances(rate, max(1.0, rate * 10))
        trend = Trend(counting(runtime.orchestrator.observers), sessions.live)
        choice = runtime.provision.provider_choice
        downloads = Downloads(choice.downloads, choice.name)
        closing.push_async_callback(downloads.close)
        yield House(options, gate, sessions, requests, Readiness(sessions), trend, downloads)


def application(house: House) -> Starlette:
    """The ASGI application of a house."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        background = (house.sessions.run_maintenance(), house.trend.watch())
        watching = [asyncio.create_task(work) for work in background]
        try:
            yield
        finally:
            for task in watching:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await house.sessions.close()

    app = Starlette(
        routes=ROUTES,
        middleware=[
            # Outermost, so that a page elsewhere can also read why it was refused.
            Middleware(
                CORSMiddleware,
                allow_origins=house.options.origins,
                allow_methods=("GET", "POST"),
                allow_headers=ALLOWED_HEADERS,
                expose_headers=("Retry-After", "WWW-Authenticate"),
            ),
            Middleware(SecurityHeaders),
            Middleware(SizeLimits, body=house.options.request_bytes),
        ],
        exception_handlers={HTTPException: answered},
        lifespan=lifespan,
    )
    app.state.house = house
    return app
