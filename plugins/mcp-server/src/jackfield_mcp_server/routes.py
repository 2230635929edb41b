"""The routes of the MCP server on a host."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

from jackfield_host.host import Host
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from jackfield_mcp_server.server_key import key_from_environment
from jackfield_mcp_server.settings import McpSettings

if TYPE_CHECKING:
    from jackfield_host.plugin_endpoints import EndpointServices

    from jackfield_mcp_server.http_endpoint import HttpEndpoint


CARD = "/mcp/confirmations/{session}/{confirmation}"


class McpRoutes:
    """Serves MCP; imports the SDK at the first request, because this takes as long as the host's start."""

    def __init__(self, settings: McpSettings, services: EndpointServices) -> None:
        self.settings = settings
        self._sessions = services.sessions
        self._key = key_from_environment(settings.key_env)
        self._endpoint: HttpEndpoint | None = None
        self._creating = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request to `/mcp`."""
        endpoint = self._endpoint or await self._create()
        await endpoint(scope, receive, send)

    async def _create(self) -> HttpEndpoint:
        async with self._creating:
            if self._endpoint is None:
                # In a thread, so that conversations continue meanwhile.
                await asyncio.to_thread(importlib.import_module, "jackfield_mcp_server.http_endpoint")
                from jackfield_mcp_server.client_sessions import ClientSessions
                from jackfield_mcp_server.clients import Clients
                from jackfield_mcp_server.host_messages import HostMessages
                from jackfield_mcp_server.http_endpoint import HttpEndpoint
                from jackfield_mcp_server.server import McpServer

                settings, sessions = self.settings, self._sessions
                client_sessions = ClientSessions(sessions, self._key)
                messages, key = HostMessages(sessions), await client_sessions.key()
                server = McpServer(sessions, client_sessions, messages, key, settings)
                self._clients = Clients(sessions.runtime, settings.connections_per_user)
                created = HttpEndpoint(server, sessions, self._clients, messages, settings.max_streams)
                await messages.start()
                self._endpoint = created
            return self._endpoint

    async def clients(self, request: Request) -> Response:
        """List the connected MCP clients of all hosts, for operators."""
        Host.of(request).require_operator(request.state.identity)
        await self._create()
        found = await self._clients.all()
        return JSONResponse({"clients": [_describe(each) for each in found]})


def _describe(client: Any) -> dict[str, Any]:
    return {
        "user": client.user,
        "name": client.name,
        "version": client.version,
        "protocol": client.protocol,
        "session": client.session,
        "host": client.host,
        "openedAt": client.opened_at,
        "seenAt": client.seen_at,
    }


def create_routes(settings: McpSettings, services: EndpointServices) -> list[BaseRoute]:
    """Return the routes of the MCP server."""
    from jackfield_mcp_server.card import Cards

    mcp, cards = McpRoutes(settings, services), Cards(services.sessions)
    return [
        Route("/mcp", mcp, methods=["GET", "POST", "DELETE"]),
        Route("/mcp/clients", mcp.clients, methods=["GET"]),
        Route(CARD, cards.show, methods=["GET"]),
        Route(CARD, cards.decide, methods=["POST"]),
    ]


def _operation(summary: str, name: str, **more: Any) -> dict[str, Any]:
    response = {
        "description": "The response.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    return {"operationId": name, "summary": summary, "responses": {"200": response}, **more}


_CARD_PARAMETERS = [
    {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"}}
    for name in ("session", "confirmation")
]

_DECISION = {
    "type": "object",
    "additionalProperties": False,
    "required": ["approve"],
    "properties": {"approve": {"type": "boolean"}},
}

OPENAPI: dict[str, Any] = {
    "paths": {
        "/mcp/clients": {"get": _operation("The connected MCP clients of all hosts.", "get_mcp_clients")},
        CARD: {
            "get": _operation(
                "The card of a call that waits for confirmation.", "get_mcp_card", parameters=_CARD_PARAMETERS
            ),
            "post": _operation(
                "Approve or decline a call that waits for confirmation.",
                "post_mcp_card",
                parameters=_CARD_PARAMETERS,
                requestBody={"required": True, "content": {"application/json": {"schema": _DECISION}}},
            ),
        },
    }
}
"""The endpoints other than `/mcp`; the MCP specification describes the messages of `/mcp`."""
