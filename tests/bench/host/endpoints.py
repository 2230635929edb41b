"""CPU time of a server for a tool call over HTTP: `POST /execute`, `/mcp`, a bare endpoint, and FastMCP."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import kb_tools
from bench.host.http_client import connected, load, post
from bench.host.processes import Program, running
from bench.implementations.workload import ARGUMENTS, TOOL, found
from bench.report import Report, RunOptions, Table, rounds_text
from bench.subprocesses import installed

ENDPOINTS = Table("endpoints", "Calls over HTTP", "what", {"us per call": ".0f", "bare endpoint = 1": ".2f"})
CLIENTS, CALLS = 8, 1600
PLUGINS = (
    "jackfield-host",
    "jackfield-mcp-server",
    "jackfield-sessions",
    "jackfield-schemas",
    "jackfield-transport-local",
)
ACCEPT = {"Accept": "application/json, text/event-stream"}
MODERN = "2026-07-28"
"""The version of MCP without a handshake."""


class Server(NamedTuple):
    """A running server, and the request of each client, which calls the tool."""

    program: Program
    requests: list[bytes]

    def call(self) -> None:
        """Let all clients call the tool."""
        asyncio.run(load(self.program.port, self.requests, CALLS // CLIENTS))


@contextmanager
def bare() -> Iterator[Server]:
    with running("bench.host.bare_endpoint") as program:
        yield Server(program, [_execute(program)] * CLIENTS)


@contextmanager
def jackfield(*, session: bool, store: str = "memory") -> Iterator[Server]:
    """Run Jackfield's host with the same tool; a call belongs to a session, or each has its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**kb_tools.install(Path(folder), 1, PLUGINS), "BENCH_STORE": store}
        with running("bench.host.jackfield_host", Path(folder), environment) as program:
            requests = [_execute(program)] * CLIENTS
            if session:
                tokens = [asyncio.run(_token(program)) for _ in range(CLIENTS)]
                requests = [_execute(program, {"Jackfield-Session": token}) for token in tokens]
            yield Server(program, requests)


@contextmanager
def jackfield_mcp_server(*, modern: bool = False, store: str = "memory") -> Iterator[Server]:
    """Run Jackfield's host as an MCP server with the same tool."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**kb_tools.install(Path(folder), 1, PLUGINS), "BENCH_STORE": store}
        with running("bench.host.jackfield_host", Path(folder), environment) as program:
            yield Server(program, _mcp_requests(program, modern=modern))


@contextmanager
def fastmcp(*, stateless: bool = False, modern: bool = False) -> Iterator[Server]:
    environment = {"BENCH_STATELESS": "1"} if stateless else {}
    with running("bench.host.fastmcp_server", env=environment) as program:
        if stateless and not modern:
            yield Server(program, [_rpc(program, "tools/call", CALL, ACCEPT, number=2)] * CLIENTS)
        else:
            yield Server(program, _mcp_requests(program, modern=modern))


CALL: dict[str, Any] = {"name": TOOL, "arguments": json.loads(ARGUMENTS)}


CONTESTANTS: dict[str, Callable[[], AbstractContextManager[Server]]] = {
    "a bare Starlette endpoint": bare,
    "**Jackfield** `POST /execute`, in a session": lambda: jackfield(session=True),
    "Jackfield `POST /execute`, in a session, SQLite": lambda: jackfield(session=True, store="sqlite"),
    "Jackfield `POST /execute`, without a session": lambda: jackfield(session=False),
    "Jackfield `/mcp`, with a handshake": jackfield_mcp_server,
    "Jackfield `/mcp`, with a handshake, SQLite": lambda: jackfield_mcp_server(store="sqlite"),
    "Jackfield `/mcp`, without a handshake": lambda: jackfield_mcp_server(modern=True),
    "FastMCP, streamable HTTP, in a session": fastmcp,
    "FastMCP, streamable HTTP, stateless, JSON": lambda: fastmcp(stateless=True),
    "FastMCP, without a handshake": lambda: fastmcp(modern=True),
}


def run(report: Report, asked: RunOptions) -> None:
    present = {
        name: start
        for name, start in CONTESTANTS.items()
        if not name.startswith("FastMCP") or installed("fastmcp")
    }
    taken: dict[str, list[float]] = {name: [] for name in present}
    with ExitStack() as stack:
        servers = {name: stack.enter_context(start()) for name, start in present.items()}
        for name, server in servers.items():
            if not found(asyncio.run(_answer(server))):
                raise ConnectionError(f"{name}: the answer does not hold what was found")
            server.call()
        for _ in range(asked.rounds):
            for name, server in servers.items():
                before = server.program.cpu
                server.call()
                taken[name].append((server.program.cpu - before) / CALLS * 1e6)
    plain = taken["a bare Starlette endpoint"]
    rows = {
        name: (
            statistics.median(times),
            statistics.median(each / base for each, base in zip(times, plain, strict=True)),
        )
        for name, times in taken.items()
    }
    caption = (
        f"CPU time of the server for a call to `{TOOL}` with five results, from {CLIENTS} clients that keep "
        f"their connections open; medians of {rounds_text(asked.rounds)} of {CALLS:,} calls."
    )
    report.table(ENDPOINTS, caption, rows)
    if len(present) < len(CONTESTANTS):
        report.note(ENDPOINTS.section, "Not installed and left out: FastMCP.")


def _execute(program: Program, headers: dict[str, str] | None = None) -> bytes:
    return post(program.port, f"/execute/{TOOL}", {"arguments": json.loads(ARGUMENTS)}, headers)


def _rpc(program: Program, method: str, params: Any, headers: dict[str, str], number: int) -> bytes:
    content = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return post(program.port, "/mcp", content, headers)


def _mcp_requests(program: Program, *, modern: bool) -> list[bytes]:
    """Return the request of each MCP client."""
    if modern:
        prefix = "io.modelcontextprotocol"
        meta = {
            f"{prefix}/protocolVersion": MODERN,
            f"{prefix}/clientCapabilities": {},
            f"{prefix}/clientInfo": {"name": "bench", "version": "1"},
        }
        headers = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": TOOL, **ACCEPT}
        return [_rpc(program, "tools/call", {**CALL, "_meta": meta}, headers, number=2)] * CLIENTS
    sessions = [asyncio.run(_initialized(program, ACCEPT)) for _ in range(CLIENTS)]
    return [_rpc(program, "tools/call", CALL, ACCEPT | each, number=2) for each in sessions]


async def _answer(server: Server) -> str:
    async with connected(server.program.port) as connection:
        response = await connection.send(server.requests[0])
    return json.dumps(response.json()).replace('\\"', '"')


async def _token(program: Program) -> str:
    """Return the token of a new session, which its first call opens."""
    async with connected(program.port) as connection:
        token: str = (await connection.send(_execute(program))).json()["token"]
    return token


async def _initialized(program: Program, headers: dict[str, str]) -> dict[str, str]:
    """Open an MCP session; return the headers that its calls need."""
    client = {"name": "bench", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    async with connected(program.port) as connection:
        response = await connection.send(_rpc(program, "initialize", params, headers, number=1))
        session = {
            "Mcp-Session-Id": response.headers["mcp-session-id"],
            "Mcp-Protocol-Version": response.json()["result"]["protocolVersion"],
        }
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await connection.send(post(program.port, "/mcp", initialized, headers | session))
    return session
