"""The tools of MCP servers: frozen at build, governed like all others, withheld when a server changes them.

The hooks import neither the SDK nor the builder; these are loaded only when something needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import (
    CapabilityOffer,
    CommandOffer,
    EndpointOffer,
    ListingRequest,
    Services,
    ToolListing,
    ToolListingOffer,
)
from jackfield.settings import NoSettings

if TYPE_CHECKING:
    import click
    from starlette.routing import BaseRoute

    from jackfield_mcp_tools.foreign_servers import ForeignServers
    from jackfield_mcp_tools.settings import McpToolsSettings


@hookimpl
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Offer `mcp`; it is available only if a server is configured."""
    from jackfield_mcp_tools.settings import McpToolsSettings

    return [CapabilityOffer("mcp", _servers, McpToolsSettings.unavailable, McpToolsSettings)]


@hookimpl
def jackfield_tool_listings() -> Iterable[ToolListingOffer]:
    """Offer the tools of the configured servers to the build."""
    return [ToolListingOffer("mcp", "mcp", _read)]


@hookimpl
def jackfield_endpoints() -> Iterable[EndpointOffer]:
    """Offer the files in results to users, and the state of the servers to operators."""
    return [
        EndpointOffer(
            "mcp_files", "/mcp-files", _file_routes, settings=NoSettings, openapi=_describe("FILES_OPENAPI")
        ),
        EndpointOffer(
            "mcp_servers",
            "/mcp-servers",
            _server_routes,
            auth="operator",
            settings=NoSettings,
            openapi=_describe("SERVERS_OPENAPI"),
        ),
    ]


def _file_routes(_settings: NoSettings, services: Any) -> Iterable[BaseRoute]:
    servers = services.runtime.capabilities.get("mcp")
    if servers is None:
        return []
    from jackfield_mcp_tools.endpoints import file_routes

    return file_routes(servers)


def _server_routes(_settings: NoSettings, services: Any) -> Iterable[BaseRoute]:
    servers = services.runtime.capabilities.get("mcp")
    if servers is None:
        return []
    from jackfield_mcp_tools.endpoints import server_routes

    return server_routes(servers)


def _describe(name: str) -> Callable[[], Mapping[str, Any]]:
    def describe() -> Mapping[str, Any]:
        from jackfield_mcp_tools import endpoints

        described: Mapping[str, Any] = getattr(endpoints, name)
        return described

    return describe


@hookimpl
def jackfield_commands() -> Iterable[CommandOffer]:
    """Offer `jackfield mcp add`, `list` and `inspect`."""
    return [
        CommandOffer(
            "mcp add", "Add an MCP server to the settings, after showing its tools.", _command("add")
        ),
        CommandOffer("mcp list", "List the MCP servers in the settings.", _command("list_servers")),
        CommandOffer("mcp inspect", "Show the current tools of MCP servers.", _command("inspect")),
    ]


def _command(name: str) -> Callable[[], click.Command]:
    def load() -> click.Command:
        from jackfield_mcp_tools import commands

        command: click.Command = getattr(commands, name)
        return command

    return load


def _servers(settings: McpToolsSettings, services: Services) -> ForeignServers:  # noqa: ARG001
    from jackfield_mcp_tools.foreign_servers import ForeignServers

    return ForeignServers(settings)


def _read(settings: McpToolsSettings, request: ListingRequest) -> ToolListing:
    from jackfield_mcp_tools.server_tools import read_tools

    return read_tools(settings, request) if settings.servers else ToolListing()
