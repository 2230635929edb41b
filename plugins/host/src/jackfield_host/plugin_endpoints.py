"""Endpoints that plugins offer with `jackfield_endpoints`, behind the host's authentication and limits."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jackfield.offers import EndpointOffer
from jackfield.runtime import Runtime
from jackfield.settings import SettingsFaults
from jackfield_sessions.manager import SessionManager
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from jackfield_host.errors import to_http_error
from jackfield_host.host import Host
from jackfield_host.settings import HostSettings

_log = logging.getLogger(__name__)

RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
"""At this path plus its own prefix, a plugin can publish which servers issue tokens for it (RFC 9728)."""


@dataclass(frozen=True, slots=True)
class EndpointServices:
    """The argument that the host passes to `create` of an `EndpointOffer`."""

    runtime: Runtime
    sessions: SessionManager
    options: HostSettings


@dataclass(frozen=True, slots=True, eq=False)
class PluginEndpoint:
    """The routes of one `EndpointOffer`."""

    offer: EndpointOffer
    owner: str
    """The name and version of the distribution that makes the offer."""
    routes: tuple[Route | WebSocketRoute | Mount, ...]

    @property
    def paths(self) -> set[str]:
        """The paths that belong to this endpoint, with all paths below them."""
        prefix = self.offer.prefix
        return {prefix} if prefix != "/" else {fixed_part(route.path) for route in self.routes}


def create_endpoints(
    services: EndpointServices, own_paths: Iterable[str], faults: SettingsFaults
) -> list[PluginEndpoint]:
    """Create the routes of every offer; paths that overlap or are outside their prefix are faults."""
    components = services.runtime.components
    created = components.create_all("endpoints", services)
    endpoints: list[PluginEndpoint] = []
    taken = dict.fromkeys(map(fixed_part, own_paths), "the host")
    for offered in components.plugins.of("jackfield_endpoints"):
        if offered.name not in created or not isinstance(offered.offer, EndpointOffer):
            continue
        place = f"plugin {offered.plugin.distribution}, endpoint {offered.name}"
        routes = [route for route in created[offered.name] if _is_usable(route, offered.offer, place, faults)]
        endpoint = PluginEndpoint(offered.offer, str(offered.plugin.distribution), tuple(routes))
        for path in sorted(endpoint.paths):
            for other, owner in taken.items():
                if _overlap(path, other):
                    faults.add(f"{place}: {path} overlaps {other} of {owner}; disable one of them")
        taken |= dict.fromkeys(endpoint.paths, place)
        endpoints.append(endpoint)
    served = {route.path for endpoint in endpoints for route in endpoint.routes}
    for endpoint in endpoints:
        metadata = f"{RESOURCE_METADATA}{endpoint.offer.prefix}"
        for route in endpoint.routes:
            route.app = AuthMiddleware(
                route.app, endpoint.offer.auth, metadata if metadata in served else None
            )
    return endpoints


def fixed_part(path: str) -> str:
    """Return a path up to its first parameter: `/files` for `/files/{name}`."""
    return path.partition("{")[0].rstrip("/") or "/"


def _overlap(one: str, other: str) -> bool:
    """Return whether two paths are equal or one is below the other; no path counts as below `/`."""
    return one == other or (
        "/" not in (one, other) and (one.startswith(f"{other}/") or other.startswith(f"{one}/"))
    )


def _is_usable(route: BaseRoute, offer: EndpointOffer, place: str, faults: SettingsFaults) -> bool:
    if not isinstance(route, Route | WebSocketRoute | Mount):
        faults.add(f"{place}: {type(route).__name__} is not a Route, a WebSocketRoute or a Mount")
        return False
    prefix = offer.prefix
    if prefix not in ("/", route.path) and not route.path.startswith(f"{prefix}/"):
        faults.add(f"{place}: the path {route.path} is not below its prefix {prefix}")
        return False
    return True


class AuthMiddleware:
    """ASGI middleware that authenticates as an offer's `auth` says and reports errors as the host does."""

    def __init__(self, app: ASGIApp, auth: str, metadata: str | None = None) -> None:
        """`metadata` is the path of the document that says who issues tokens, if there is one."""
        self._app = app
        self._auth = auth
        self._metadata = metadata

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request or a WebSocket."""
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            identity = await Host.of(HTTPConnection(scope)).authenticate(scope, self._auth)
            scope.setdefault("state", {})["identity"] = identity
            await self._app(scope, receive, watch)
        except Exception as error:
            if started:
                _log.exception("the plugin endpoint %s failed", scope["path"])
                raise
            response = self._refuse(error, scope)
            if scope["type"] == "websocket":
                await WebSocket(scope, receive, send).send_denial_response(response)
            else:
                await response(scope, receive, send)

    def _refuse(self, error: Exception, scope: Scope) -> Response:
        response = to_http_error(error).response()
        if response.status_code == 401 and self._metadata is not None:
            url = f"{str(HTTPConnection(scope).base_url).rstrip('/')}{self._metadata}"
            response.headers["WWW-Authenticate"] += f', resource_metadata="{url}"'
        return response


def describe_routes(endpoint: PluginEndpoint) -> Mapping[str, Any]:
    """Return the OpenAPI `paths` and `components` of an endpoint, from its offer or else from its routes."""
    if endpoint.offer.openapi is not None:
        return endpoint.offer.openapi()
    paths: dict[str, Any] = {}
    for route in endpoint.routes:
        if not isinstance(route, Route) or not route.include_in_schema:
            continue
        for method in sorted((route.methods or set()) - {"HEAD", "OPTIONS"}):
            summary = (route.endpoint.__doc__ or "").strip().partition("\n")[0]
            described = {
                "operationId": f"{method.lower()}_{route.name}",
                "summary": summary or f"An endpoint of {endpoint.owner}.",
                "parameters": [
                    {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                    for name in route.param_convertors
                ],
                "responses": {"200": {"description": "The response."}},
            }
            paths.setdefault(route.path_format, {})[method.lower()] = described
    return {"paths": paths}
