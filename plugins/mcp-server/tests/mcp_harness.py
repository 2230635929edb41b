"""A host with tools for MCP clients: in this process, or in one that a test can kill."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from jackfield.ledger import IDEMPOTENCY_META
from jackfield.settings import Settings
from jackfield_host.host import Host
from jackfield_testkit.postgres import free_port
from jackfield_testkit.site_packages import SitePackages
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent
from served_hosts import PATIENCE, ServingProcess, served_host, wait_until

ALLOW = (
    "mct-*",
    "jackfield-capability-*",
    "jackfield-console",
    "jackfield-host",
    "jackfield-mcp-server",
    "jackfield-observability",
    "jackfield-policies",
    "jackfield-store-*",
)

ACCEPT = {"Accept": "application/json, text/event-stream"}

INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    },
}

ERAS = ("legacy", "2026-07-28")

HANDLER = """\
import asyncio
import inspect
import os
from pathlib import Path

from jackfield import fail, ok, partial
from jackfield.contract.context import ModelRequest
from jackfield.contract.tool import ErrorType


def folder():
    return Path(os.environ["MCT_FOLDER"])


def trace(word, args):
    with (folder() / "effects.txt").open("a") as file:
        file.write(f"{word} {args['text']}\\n")


async def passes(gate):
    while gate and not (folder() / gate).exists():
        await asyncio.sleep(0.01)


async def execute(args, ctx):
    trace("begun", args)
    try:
        await passes(args["before"])
    except asyncio.CancelledError:
        trace("stopped", args)
        raise
    trace("done", args)
    await passes(args["after"])
    return await KIND(args, ctx)


async def plain(args, ctx):
    return ok({"words": len(args["text"].split()), "text": args["text"]})


async def facts(args, ctx):
    return ok({"session": ctx.session.id, "user": ctx.session.user, "turn": ctx.session.turn})


async def several(args, ctx):
    return ok(args["text"].split())


async def nothing(args, ctx):
    return ok({"nothing": None, "deep": {"nothing": None}})


async def wrong(args, ctx):
    return ok({"words": "many"})


async def refuses(args, ctx):
    return fail(ErrorType.CONFLICT, "That slot is taken.", suggestion="Ask for another one.")


async def breaks(args, ctx):
    raise RuntimeError("secret: " + str(folder()))


async def tells(args, ctx):
    await ctx.progress("Half way.", fraction=0.5)
    await ctx.progress("Nearly.")
    await ctx.progress("There.", fraction=1.0)
    return ok({"told": True})


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 50},
        "size": {"type": "string", "enum": ["s", "m"], "default": "s"},
    },
    "required": ["name"],
    "additionalProperties": False,
}


async def asks(args, ctx):
    answers = []
    for message in args["text"].split("/"):
        answer = await ctx.ask_user(message, FORM, asked_by="the tool", seconds=30)
        answers.append([answer.outcome, dict(answer.values)])
    return ok({"answers": answers})


async def composes(args, ctx):
    answer = await ctx.ask_model(ModelRequest("Be brief.", [("user", args["text"])], 50, 30))
    if answer is None:
        return fail(ErrorType.PERMANENT, "No model answers here.")
    return ok({"text": answer.text, "truncated": answer.truncated})


async def streams(args, ctx):
    yield partial("Half of it, ", fraction=0.5)
    await passes(args["before"])
    yield partial({"rest": args["text"]})
    yield ok({"streamed": True})


KIND = {kind}

if inspect.isasyncgenfunction(KIND):
    execute = KIND
"""

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["text"],
    "properties": {
        "text": {"type": "string", "description": "What it is about.", "maxLength": 100},
        "before": {"type": "string", "description": "What it waits for before it acts.", "default": ""},
        "after": {"type": "string", "description": "What it waits for after it acted.", "default": ""},
    },
}

RETURNS = {
    "type": "object",
    "required": ["words", "text"],
    "properties": {"words": {"type": "integer"}, "text": {"type": "string"}},
}

WRITES: dict[str, Any] = {"category": "action", "sideEffects": "writes", "idempotent": False}

TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "mct_look": ("plain", {"returns": RETURNS, "sideEffects": "read_only"}),
    "mct_note": ("plain", WRITES),
    "mct_book": ("plain", {**WRITES, "requiresConfirmation": True, "preview": "Book {text}?"}),
    "mct_facts": ("facts", {}),
    "mct_finds": ("plain", {"category": "retrieval", "sideEffects": "read_only"}),
    "mct_several": ("several", {"returns": {"type": "array", "items": {"type": "string"}}}),
    "mct_nothing": ("nothing", {}),
    "mct_wrong": ("wrong", {"returns": RETURNS}),
    "mct_refuses": ("refuses", {}),
    "mct_breaks": ("breaks", {}),
    "mct_tells": ("tells", {}),
    "mct_streams": ("streams", {}),
    "mct_asks": ("asks", {}),
    "mct_composes": ("composes", {}),
    "mct_signs": ("asks", {**WRITES, "requiresConfirmation": True, "preview": "Sign {text}?"}),
    "mct_rationed": ("plain", {"rateLimit": {"calls": 1, "windowMs": 60000}}),
    "mct_spoken": ("plain", {"allowedModes": ["voice"]}),
}
"""The tools: the function that answers, and further fields of the manifest."""


def make_site(folder: Path) -> Path:
    """Create a folder with the tools of these tests and their registry."""
    site = SitePackages(folder)
    for tool, (kind, fields) in TOOLS.items():
        site.tool(
            tool,
            distribution=f"mct-{tool}",
            schema={
                "description": f"Does what {tool} does.",
                "latencyBudgetMs": 60000,
                "parameters": PARAMETERS,
                **fields,
            },
            guide=f"# {tool}\n\nSummary of {tool}.\n",
            handler=HANDLER.replace("{kind}", kind),
        )
    site.frozen(*ALLOW)
    return folder


@dataclass(frozen=True)
class McpFolder:
    """The working folder of hosts, with their registry and their store."""

    path: Path
    site: Path

    def tables(self, endpoint: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tables of the settings file; `console` says whether the host has a console."""
        console = {"enabled": endpoint.get("console", True)}
        return {
            "stores": {"sqlite": {"path": str(self.path / "jackfield.db")}},
            "observers": {"audit": {"path": str(self.path / "audit.jsonl")}},
            "endpoints": {"mcp": {k: v for k, v in endpoint.items() if k != "console"}, "console": console},
        }

    def settings(self, endpoint: Mapping[str, Any]) -> Settings:
        """Return the settings of a host in this folder."""
        return Settings(
            allow=ALLOW,
            registry=self.site / "tool_registry.json",
            provider="none",
            store="sqlite",
            tables=self.tables(endpoint),
        )

    def effects(self, line: str) -> int:
        """Count how often a tool wrote this line."""
        path = self.path / "effects.txt"
        return path.read_text().splitlines().count(line) if path.exists() else 0

    async def until(self, line: str, count: int = 1) -> None:
        """Wait until a tool has written a line."""
        await wait_until(lambda: self.effects(line) >= count)

    def open_gate(self, name: str) -> None:
        """Let tools continue that wait for this gate."""
        (self.path / name).touch()

    def config(self, port: int, endpoint: Mapping[str, Any], **options: Any) -> Path:
        """Write a settings file and return its path."""
        top = {"provider": "none", "store": "sqlite", "registry": str(self.site / "tool_registry.json")}
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in {**top, "allow": list(ALLOW)}.items()]
        tables = {"host": {"port": port, "requests_per_minute": 1e6, **options}}
        for kind, named in self.tables(endpoint).items():
            tables |= {f"{kind}.{name}": table for name, table in named.items()}
        for name, table in tables.items():
            lines.append(f"[{name}]\n")
            lines += [f"{key} = {json.dumps(value)}\n" for key, value in table.items()]
        path = self.path / f"host-{port}.toml"
        path.write_text("".join(lines))
        return path

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a process that uses this folder."""
        return {**os.environ, "PYTHONPATH": str(self.site), "MCT_FOLDER": str(self.path)}


def keyed(key: Any) -> Any:
    """Return the `_meta` of a call with a key."""
    return {IDEMPOTENCY_META: key}


def text_of(result: CallToolResult, index: int) -> str:
    """Return one of the texts of a result."""
    content = result.content[index]
    assert isinstance(content, TextContent)
    return content.text


@dataclass
class RunningHost:
    """A host that accepts connections."""

    port: int
    host: Host | None = None

    @property
    def url(self) -> str:
        """The address of the host."""
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def http(self, token: str | None = None) -> AsyncIterator[httpx2.AsyncClient]:
        """Return an HTTP client of the host."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        limits = httpx2.Limits(max_connections=1000)
        async with httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=PATIENCE, limits=limits, verify=False
        ) as http:
            yield http

    @asynccontextmanager
    async def client(
        self, mode: str, token: str | None = None, http: httpx2.AsyncClient | None = None, **options: Any
    ) -> AsyncIterator[Client]:
        """Connect the client of the official SDK."""
        async with AsyncExitStack() as stack:
            used = http or await stack.enter_async_context(self.http(token))
            transport = streamable_http_client(f"{self.url}/mcp", http_client=used)
            yield await stack.enter_async_context(Client(transport, mode=mode, **options))


@asynccontextmanager
async def running_host(
    folder: McpFolder, endpoint: Mapping[str, Any] | None = None, **options: Any
) -> AsyncIterator[RunningHost]:
    """Run a host in this process, on a free port."""
    settings = folder.settings(endpoint or {})
    async with served_host(settings, **{"requests_per_minute": 1e6, **options}) as (port, host):
        yield RunningHost(port, host)


class HostProcess(RunningHost, ServingProcess):
    """A host in a process of its own, which a test can kill."""

    def __init__(
        self,
        folder: McpFolder,
        endpoint: Mapping[str, Any] | None = None,
        *,
        command: str = "serve",
        **options: Any,
    ) -> None:
        RunningHost.__init__(self, free_port())
        config = folder.config(self.port, endpoint or {}, **options)
        ServingProcess.__init__(self, self.port, folder.path, config, folder.environ, command=command)
