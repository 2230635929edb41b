"""The caller of an MCP request: the authenticated user and the client program."""

from __future__ import annotations

from typing import Any, NamedTuple

import mcp_types as t
from jackfield_sessions.admission import Identity
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

MAX_NAME = 200
"""Maximum length of a client's name and version, in characters."""

Context = ServerRequestContext[Any, Any]


class Caller(NamedTuple):
    """The user and the client of a request."""

    identity: Identity
    client: str
    """The name of the client program; empty if it gives none."""
    version: str
    modern: bool
    """True if the request needs no handshake (protocol 2026-07-28 and later)."""
    connection: str = ""
    """The id of the client's connection; empty if every request is a connection of its own."""


class StdioClient(NamedTuple):
    """The only client of a server over stdio."""

    identity: Identity
    connection: str


def caller_of(ctx: Context, local: StdioClient | None) -> Caller:
    """Return the caller of a request; over stdio it is the `local` client."""
    if ctx.request is not None:
        identity, connection = ctx.request.state.identity, getattr(ctx.request.state, "connection", "")
    elif local is not None:
        identity, connection = local
    else:
        raise RuntimeError("a request without a user")
    params = ctx.session.client_params
    info = params.client_info if params is not None else t.Implementation(name="", version="")
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return Caller(identity, info.name[:MAX_NAME], info.version[:MAX_NAME], modern, connection)
