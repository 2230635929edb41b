"""The protected-resource metadata (RFC 9728), which tells MCP clients who issues tokens for `/mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from jackfield_mcp_server import METADATA_PATH

if TYPE_CHECKING:
    from jackfield_host.settings import HostSettings


def create_routes(options: HostSettings) -> list[BaseRoute]:
    """Return the metadata route; none if the host's settings name no token issuer with an HTTP URL."""
    issuer = options.jwt.issuer if options.jwt is not None else None
    if issuer is None or not issuer.startswith(("https://", "http://")):
        return []

    async def metadata(request: Request) -> Response:
        """Say which authorization server issues tokens for the MCP endpoint."""
        resource = f"{str(request.base_url).rstrip('/')}/mcp"
        return JSONResponse(
            {
                "resource": resource,
                "authorization_servers": [issuer],
                "bearer_methods_supported": ["header"],
                "resource_name": "Jackfield",
            }
        )

    return [Route(METADATA_PATH, metadata, methods=["GET"])]
