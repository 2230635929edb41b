"""`GET /mcp-files/{id}` for the files in results, and `GET /mcp-servers` for the servers' state."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jackfield_builder.listed_definitions import visible
from jackfield_capability_types.files import IMAGE_TYPES, OTHER_TYPE
from jackfield_images.files import FilesUnavailableError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jackfield_mcp_tools.results import FILES_PATH

if TYPE_CHECKING:
    from jackfield_mcp_tools.foreign_servers import ForeignServers, ServerReport

SERVERS_PATH = "/mcp-servers"
RETRY_SECONDS = 5

_JSON = {"content": {"application/json": {"schema": {"type": "object"}}}}
FILES_OPENAPI: Mapping[str, Any] = {
    "paths": {
        f"{FILES_PATH}/{{id}}": {
            "get": {
                "operationId": "get_mcp_files_id",
                "summary": "A file in the result of an MCP server's tool.",
                "parameters": [
                    {
                        "name": "id",
                        "in": "path",
                        "required": True,
                        "description": "The id from the result.",
                        "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
                    }
                ],
                "responses": {
                    "200": {
                        "description": "The file; images are displayed, other files are downloaded.",
                        "content": {OTHER_TYPE: {"schema": {"type": "string", "format": "binary"}}},
                    },
                    "404": {"description": "There is no such file."},
                    "503": {"description": "The files cannot be read at the moment."},
                },
            }
        }
    }
}
SERVERS_OPENAPI: Mapping[str, Any] = {
    "paths": {
        SERVERS_PATH: {
            "get": {
                "operationId": "get_mcp_servers",
                "summary": "The MCP servers, their frozen tools, and what changed in them.",
                "responses": {"200": {"description": "The servers by name.", **_JSON}},
            }
        }
    }
}


def file_routes(servers: ForeignServers) -> list[Route]:
    """Return the route that serves files."""

    async def show(request: Request) -> Response:
        """Return a file; anyone who knows its id may read it."""
        try:
            found = await asyncio.to_thread(servers.files.read, request.path_params["id"])
        except FilesUnavailableError:
            retry = {"Retry-After": str(RETRY_SECONDS)}
            return _error(503, "files_unavailable", "The files cannot be read at the moment.", retry)
        if found is None:
            return _error(404, "unknown_file", "There is no such file; it may have been removed.")
        file, content = found
        # A file from a server must not run as part of this host's pages.
        is_image = file.media_type in IMAGE_TYPES
        headers = {
            "Cache-Control": "private, max-age=31536000, immutable",
            "Content-Disposition": "inline" if is_image else "attachment",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(content, media_type=file.media_type if is_image else OTHER_TYPE, headers=headers)

    return [Route(f"{FILES_PATH}/{{id}}", show, methods=["GET"])]


def server_routes(servers: ForeignServers) -> list[Route]:
    """Return the route that reports the servers' states."""

    async def show(_request: Request) -> Response:
        """Return every server with its frozen tools."""
        return JSONResponse({"servers": {each.name: _wire(each) for each in servers.reports()}})

    return [Route(SERVERS_PATH, show, methods=["GET"])]


def _wire(report: ServerReport) -> dict[str, Any]:
    return {
        "address": report.address,
        "state": report.state,
        "reason": report.reason or None,
        "protocol": report.protocol or None,
        "tools": [
            {
                "toolId": tool.tool_id,
                "name": visible(tool.name),
                "withheld": tool.drift.reason if tool.drift else None,
                "changes": list(tool.drift.changes) if tool.drift else [],
            }
            for tool in report.tools
        ],
        "unfrozen": [visible(name) for name in report.unfrozen],
    }


def _error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers=headers)
