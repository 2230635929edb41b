"""MCP over stdin and stdout: a host for one client, without HTTP."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackfield.registry.registry import RegistryError
from jackfield_host.app import create_app, open_host
from jackfield_host.host import Host
from jackfield_sessions.admission import Identity
from mcp.server.stdio import stdio_server

from jackfield_mcp_server.caller import StdioClient
from jackfield_mcp_server.client_sessions import ClientSessions
from jackfield_mcp_server.host_messages import HostMessages
from jackfield_mcp_server.routes import McpRoutes
from jackfield_mcp_server.server import McpServer
from jackfield_mcp_server.server_key import key_from_environment
from jackfield_mcp_server.settings import McpSettings

if TYPE_CHECKING:
    from jackfield_host.commands.deployment import DeploymentSettings


async def serve_stdio(deployment: DeploymentSettings, identity: Identity) -> None:
    """Serve until the client closes stdin; running calls finish."""
    async with open_host(
        deployment.settings, deployment.host, deployment.faults, certain=deployment.certain
    ) as host:
        sessions, settings = host.sessions, _settings(host)
        client_sessions = ClientSessions(sessions, key_from_environment(settings.key_env))
        key, local = await client_sessions.key(), StdioClient(identity, os.urandom(16).hex())
        server = McpServer(sessions, client_sessions, HostMessages(sessions), key, settings, local=local)
        app = create_app(host)
        # The lifespan runs the heartbeat and the maintenance of the store.
        async with app.router.lifespan_context(app):
            try:
                async with stdio_server() as (read, write):
                    await server.run(read, write, server.create_initialization_options())
                    await sessions.drain()
            except* BrokenPipeError:
                # The client has died, so nobody reads the answers.
                await sessions.drain()


def _settings(host: Host) -> McpSettings:
    """Return the settings of the MCP server, as the host has read them."""
    for endpoint in host.endpoints:
        for route in endpoint.routes:
            served = getattr(route, "endpoint", None)
            if isinstance(served, McpRoutes):
                return served.settings
    raise RegistryError(
        "the registry has no MCP server: install jackfield-mcp-server and run `jackfield build`"
    )
