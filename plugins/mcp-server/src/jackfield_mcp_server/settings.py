"""The settings of the MCP server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jackfield.settings import EnvironmentVariable, Ge, Gt, Help, HttpUrl, Le, Unit


@dataclass(frozen=True)
class McpSettings:
    """`[endpoints.mcp]`"""

    public_url: Annotated[
        HttpUrl | None,
        Help(
            "The address at which browsers reach the host, for links to confirmation cards and files.",
            default="the address that the client uses",
        ),
    ] = None
    trust_clients: Annotated[
        bool,
        Help(
            "Let a client ask the user for confirmation itself, in a form. A client that answers the "
            "form without asking approves the call."
        ),
    ] = False
    key_env: Annotated[
        EnvironmentVariable | None,
        Help(
            "The environment variable that holds the server's key, at least 32 characters; all hosts need "
            "the same key.",
            default="a key that the hosts create and keep in the store",
        ),
    ] = None
    wait_seconds: Annotated[
        float,
        Gt(0),
        Le(3600),
        Unit("seconds"),
        Help("How long a call waits for the user's decision on its card before the client gets an answer."),
    ] = 120.0
    max_file_bytes: Annotated[
        int,
        Ge(0),
        Le(33_554_432),
        Unit("bytes"),
        Help("The maximum total size of the files in a result; clients get links to further files."),
    ] = 4_194_304
    page_size: Annotated[
        int, Ge(1), Le(500), Unit("tools"), Help("The maximum number of tools in a page of `tools/list`.")
    ] = 100
    connections_per_user: Annotated[
        int,
        Ge(1),
        Le(100_000),
        Help("The maximum number of connected clients per user, across all hosts."),
    ] = 1000
    max_streams: Annotated[
        int,
        Ge(1),
        Le(100_000),
        Help("The maximum number of clients on this host that wait for changes to the tool list."),
    ] = 1000
