"""The levels of the log messages that a client gets.

A client without a handshake states the level with each request. A client with a handshake sets the level for
its connection, with `logging/setLevel`; over HTTP, the level is part of the connection's record.
"""

from __future__ import annotations

from typing import get_args

import mcp_types as t
from mcp.server.connection import allowed_log_levels
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from jackfield_mcp_server.caller import Context

_LEVELS: tuple[t.LoggingLevel, ...] = get_args(t.LoggingLevel)
"""All levels, the least important one first."""


class LogLevels:
    """Sets the level of a connection, and returns the levels of a request."""

    def __init__(self) -> None:
        self._stdio: t.LoggingLevel | None = None

    async def set(self, ctx: Context, params: t.SetLevelRequestParams) -> t.EmptyResult:
        """Answer `logging/setLevel`; the HTTP endpoint stores the level in the connection's record."""
        if ctx.request is None:
            self._stdio = params.level
        else:
            ctx.request.state.log_level = params.level
        return t.EmptyResult()

    def of_request(self, ctx: Context) -> frozenset[t.LoggingLevel]:
        """Return the levels that the client of a request asked for; empty if it asked for none."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return allowed_log_levels(ctx.protocol_version, ctx.meta)
        level = self._stdio if ctx.request is None else ctx.request.state.log_level
        return frozenset(_LEVELS[_LEVELS.index(level) :]) if level in _LEVELS else frozenset()
