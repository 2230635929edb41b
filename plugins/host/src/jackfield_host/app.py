"""The Starlette application: its routes, its middleware and its lifespan."""

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

from jackfield_host.development.status import DevelopmentStatus
from jackfield_host.endpoints.docs import ENDPOINTS, asyncapi
from jackfield_host.endpoints.downloads import Downloads
from jackfield_host.endpoints.health import HealthCheck
from jackfield_host.endpoints.operations import MetricsHistory, find_metrics_observer
from jackfield_host.errors import handle_routing_error, to_http_error
from jackfield_host.heartbeat import Heartbeat
from jackfield_host.host import Host
from jackfield_host.plugin_endpoints import EndpointServices, create_endpoints
from jackfield_host.security.auth_errors import AuthError
from jackfield_host.security.authenticator import Authenticator
from jackfield_host.security.headers import SecurityHeaders
from jackfield_host.security.limits import SizeLimits, UserTokenBuckets
from jackfield_host.security.shared_limits import SharedTokenBuckets
from jackfield_host.settings import HostSettings
from jackfield_host.startup import start_runtime
from jackfield_host.websocket import WebSocketEndpoint

ROUTES: list[Route | WebSocketRoute] = [
    WebSocketRoute("/ws/text", WebSocketEndpoint("text")),
    WebSocketRoute("/ws/voice", WebSocketEndpoint("voice")),
    Route("/asyncapi.json", asyncapi),
    *(endpoint.route() for endpoint in ENDPOINTS),
]

NO_CONSOLE = """\
This is a Jackfield host without a console.
To get one, install jackfield-console, run `jackfield build`, and restart the host.
GET /openapi.json lists the endpoints; GET /asyncapi.json describes the WebSockets.
"""

ALLOWED_HEADERS = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "Jackfield-Session",
    "Jackfield-Turn",
    "Last-Event-ID",
    # For MCP clients in browsers.
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Protocol-Version",
    "Mcp-Session-Id",
)
"""The request headers that pages of an allowed origin may send."""


@asynccontextmanager
async def open_host(
    settings: Settings,
    options: HostSettings,
    faults: SettingsFaults | None = None,
    *,
    certain: bool = True,
    development: DevelopmentStatus | None = None,
    one_of_several: bool = False,
) -> AsyncIterator[Host]:
    """Create a host with everything it needs; one `SettingsError` reports every fault.

    `faults` holds the faults found so far; `certain` is false if keys in the settings file are faulty.
    With `development`, the registry can be reloaded. `one_of_several` says that several processes serve a
    port together, which requires a shared store.
    """
    faults = SettingsFaults() if faults is None else faults
    async with AsyncExitStack() as closing:
        authenticator = faults.collect(lambda: Authenticator(options))
        for name, key in options.keys.items():
            if key.toolset is not None and key.toolset not in settings.toolsets:
                known = ", ".join(settings.toolsets) or "none"
                fault = f"there is no toolset {key.toolset!r} in [toolsets]; defined toolsets: {known}"
                faults.add(f"[host.keys.{name}] toolset: {fault}")
        runtime = await start_runtime(
            settings,
            faults,
            closing,
            certain=certain,
            reloadable=development is not None,
            one_of_several=one_of_several,
            host_name=options.name,
        )
        assert authenticator is not None  # noqa: S101 - without faults there is one
        transport = runtime.transport()
        closing.push_async_callback(transport.close)
        models = {name: runtime.components.model_transport(name) for name in runtime.components.model_choices}
        for each in models.values():
            closing.push_async_callback(each.close)
        sessions = SessionManager(runtime, transport, settings, options, models)
        rate = options.requests_per_minute / 60
        buckets = UserTokenBuckets(rate, max(1.0, rate * 10))
        history = MetricsHistory(find_metrics_observer(runtime.orchestrator.observers), sessions.live)
        choice = runtime.components.provider_choice
        downloads = Downloads(choice.downloads, choice.name)
        closing.push_async_callback(downloads.close)
        services = EndpointServices(runtime, sessions, options)
        endpoints = create_endpoints(services, (route.path for route in ROUTES), faults)
        faults.check()
        yield Host(
            options,
            authenticator,
            sessions,
            request_limits=SharedTokenBuckets(buckets, runtime.store, runtime.hosts),
            health_check=HealthCheck(sessions),
            metrics_history=history,
            heartbeat=Heartbeat(sessions, options, history),
            downloads=downloads,
            endpoints=tuple(endpoints),
            development=development,
        )


def create_app(host: Host) -> Starlette:
    """Create the ASGI application of a host."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await host.heartbeat.start()
        background = (host.sessions.run_maintenance(), host.metrics_history.run(), host.heartbeat.run())
        tasks = [asyncio.create_task(work) for work in background]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await host.sessions.close()

    app = Starlette(
        routes=_routes(host),
        middleware=[
            # Outermost, so that pages of other origins can also read why they were rejected.
            Middleware(
                CORSMiddleware,
                allow_origins=host.options.origins,
                allow_methods=_allowed_methods(host),
                allow_headers=ALLOWED_HEADERS,
                expose_headers=("Mcp-Session-Id", "Retry-After", "WWW-Authenticate"),
            ),
            Middleware(SecurityHeaders),
            Middleware(SizeLimits, body=host.options.request_bytes),
        ],
        exception_handlers={HTTPException: handle_routing_error},
        lifespan=lifespan,
    )
    app.state.host = host
    return app


def _routes(host: Host) -> list[BaseRoute]:
    """Return the host's own routes and those of plugins."""
    routes: list[BaseRoute] = [*ROUTES, *(route for each in host.endpoints for route in each.routes)]
    if not any("/" in each.paths for each in host.endpoints):
        routes.append(Route("/", _no_console))
    return routes


async def _no_console(request: Request) -> Response:
    try:
        await Host.of(request).authenticate(request.scope, "public")
    except AuthError as error:
        return to_http_error(error).response()
    return PlainTextResponse(NO_CONSOLE)


def _allowed_methods(host: Host) -> list[str]:
    """Return the HTTP methods that pages of an allowed origin may use."""
    routes = (route for endpoint in host.endpoints for route in endpoint.routes)
    used = {method for route in routes for method in getattr(route, "methods", None) or ()}
    return sorted({"GET", "POST"} | used - {"HEAD", "OPTIONS"})
