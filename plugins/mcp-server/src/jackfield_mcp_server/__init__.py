"""Jackfield as an MCP server: `/mcp` on the host, and `jackfield mcp` over stdio."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import CommandOffer, EndpointOffer
from jackfield.settings import NoSettings

from jackfield_mcp_server.settings import McpSettings

if TYPE_CHECKING:
    import click
    from starlette.routing import BaseRoute

METADATA_PATH = "/.well-known/oauth-protected-resource/mcp"


@hookimpl
def jackfield_endpoints() -> Iterable[EndpointOffer]:
    """Offer the MCP endpoint, and the metadata with which an MCP client finds the token issuer."""
    return [
        EndpointOffer("mcp", "/mcp", _create_mcp, settings=McpSettings, openapi=_describe),
        EndpointOffer(
            "mcp_metadata", METADATA_PATH, _create_metadata, auth="public", settings=NoSettings, openapi=dict
        ),
    ]


@hookimpl
def jackfield_commands() -> Iterable[CommandOffer]:
    """Offer `jackfield mcp`."""
    return [CommandOffer("mcp", "Serve the tools to an MCP client over stdio.", _command)]


def _create_mcp(settings: McpSettings, services: Any) -> Iterable[BaseRoute]:
    from jackfield_mcp_server.routes import create_routes

    return create_routes(settings, services)


def _create_metadata(_settings: Any, services: Any) -> Iterable[BaseRoute]:
    from jackfield_mcp_server.resource_metadata import create_routes

    return create_routes(services.options)


def _describe() -> Mapping[str, Any]:
    from jackfield_mcp_server.routes import OPENAPI

    return OPENAPI


def _command() -> click.Command:
    from jackfield_mcp_server.command import mcp

    return mcp
