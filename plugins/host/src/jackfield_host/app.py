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
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from jackfield_host import errors
from jackfield_host.endpoints.protocol import asyncapi
from jackfield_host.endpoints.visit import authenticate
from jackfield_host.errors import answered
from jackfield_host.house import House
from jackfield_host.lifecycle.checks import start_runtime
from jackfield_host.lifecycle.readiness import Readiness
from jackfield_host.openapi import OPERATIONS
from jackfield_host.operations.downloads import Downloads
from jackfield_host.operations.figures import Trend
from jackfield_host.operations.watchers import counting
from jackfield_host.plugin_endpoints import EndpointServices, create_endpoints
from jackfield_host.security.allowances import Allowances
from jackfield_host.security.gate import Gate
from jackfield_host.security.headers import SecurityHeaders
from jackfield_host.security.identity import Refused
from jackfield_host.security.limits import SizeLimits
from jackfield_host.settings import HostSettings
from jackfield_host.websocket import WebSocketEndpoint

ROUTES: list[Route | WebSocketRoute] = [
    WebSocketRoute("/ws/text", WebSocketEndpoint("text")),
    WebSocketRoute("/ws/voice", WebSocketEndpoint("voice")),
    Route("/asyncapi.json", asyncapi),
    *(operation.route() for operation in OPERATIONS),
]

NO_CONSOLE = """\
This is a Jackfield host. It serves no console: install jackfield-console and run `jackfield build`.
GET /openapi.json lists the endpoints, GET /asyncapi.json describes the WebSockets.
"""

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
        choice = runtime.components.provider_choice
        downloads = Downloads(choice.downloads, choice.name)
        closing.push_async_callback(downloads.close)
        services = EndpointServices(runtime, sessions, options)
        endpoints = create_endpoints(services, (route.path for route in ROUTES), faults)
        faults.check()
        yield House(
            options, gate, sessions, requests, Readiness(sessions), trend, downloads, tuple(endpoints)
        )


def routes_of(house: House) -> list[BaseRoute]:
    """The host's own routes and those of plugins."""
    routes: list[BaseRoute] = [*ROUTES, *(route for each in house.endpoints for route in each.routes)]
    if not any("/" in each.paths for each in house.endpoints):
        routes.append(Route("/", no_console))
    return routes


async def no_console(request: Request) -> Response:
    """What `/` answers without the console."""
    try:
        await authenticate(House.of(request), request.scope, "public")
    except Refused as error:
        return errors.of(error).response()
    return PlainTextResponse(NO_CONSOLE)


def methods_of(house: House) -> list[str]:
    """The HTTP methods that a page of another origin may use, where that origin is allowed."""
    routes = (route for endpoint in house.endpoints for route in endpoint.routes)
    used = {method for route in routes for method in getattr(route, "methods", None) or ()}
    return sorted({"GET", "POST"} | used - {"HEAD", "OPTIONS"})


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
        routes=routes_of(house),
        middleware=[
            # Outermost, so that a page elsewhere can also read why it was refused.
            Middleware(
                CORSMiddleware,
                allow_origins=house.options.origins,
                allow_methods=methods_of(house),
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
