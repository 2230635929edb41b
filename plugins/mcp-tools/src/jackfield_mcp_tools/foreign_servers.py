"""The capability `mcp`: calls servers' frozen tools, and withholds tools that a server has changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from jackfield import ErrorType, SessionView, ToolResponse, fail
from jackfield.contract.snapshot import FrozenTool
from jackfield_builder.listed_definitions import definition_changes, renamed, visible
from jackfield_capability_types.files import FileContent, ShownFile
from jackfield_importers.runtime.wire_arguments import original_shape

from jackfield_mcp_tools.call_failures import CallError
from jackfield_mcp_tools.definitions import Definition, changed_parts, from_origin, frozen_definitions
from jackfield_mcp_tools.results import ResultReader, attached_files
from jackfield_mcp_tools.server_requests import CallContext
from jackfield_mcp_tools.settings import McpToolsSettings
from jackfield_mcp_tools.stored_files import StoredFiles
from jackfield_mcp_tools.supervised_server import ServerState, SupervisedServer

if TYPE_CHECKING:
    from jackfield.runtime import Runtime

_log = logging.getLogger("jackfield.mcp")

HOW_TO_ACCEPT = "to accept the changes, run `jackfield build` and restart the host"
"""How an operator accepts a changed tool after reviewing it."""


class ToolDrift(NamedTuple):
    """The difference between a server's tool and its frozen definition."""

    reason: str
    """A clause that follows the tool's name; the model reads it, so it contains no text from the server."""
    changes: tuple[str, ...] = ()
    """The changes, with the server's texts; shown only to people."""


class ToolState(NamedTuple):
    """A server's frozen tool: its id, its name on the server, and its drift."""

    tool_id: str
    name: str
    drift: ToolDrift | None


class ServerReport(NamedTuple):
    """The state of a server and its tools, for people."""

    name: str
    address: str | None
    state: ServerState
    reason: str
    protocol: str
    tools: tuple[ToolState, ...]
    unfrozen: tuple[str, ...]
    """The names of tools that the server has, but the registry does not."""


class ForeignServers:
    """The servers of a deployment, each with its supervisor."""

    def __init__(self, settings: McpToolsSettings) -> None:
        self._settings = settings
        self.files = StoredFiles(settings)
        self._servers: dict[str, SupervisedServer] = {}
        self._runtime: Runtime | None = None
        self._wire_tools: tuple[str, frozenset[str]] = ("", frozenset())

    def for_session(self, session: SessionView) -> ForeignServers:  # noqa: ARG002 - the protocol's signature
        """Return the view for a session: this object, as servers learn nothing about sessions or users."""
        return self

    def started(self, runtime: Runtime) -> None:
        """Connect to the servers whose tools are in the registry; withhold tools without a server."""
        self._runtime = runtime
        for name in self._frozen_by_server():
            if name in self._settings.servers:
                server = SupervisedServer(name, self._settings.servers[name], self._compare)
                self._servers[name] = server
                server.start()
            self._compare_tools(name)

    async def close(self) -> None:
        """Close all connections."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    async def call(
        self,
        tool_id: str,
        args: dict[str, Any],
        ctx: CallContext,
        key: str | None,
    ) -> ToolResponse:
        """Call a frozen tool on its server, if the server's definition has not changed.

        If the tool writes, the server also gets the call's idempotency key.
        """
        tool = self._registry.snapshot().tools[tool_id]
        pinned, writes = from_origin(tool.origin or {}), tool.manifest.writes
        server = self._servers.get(pinned.server)
        if server is None:
            return _withheld(tool_id, self._drift(pinned) or ToolDrift("is not served here"))
        try:
            await (server.checked() if server.settings.check_every_call else server.ready())
            if drift := self._drift(pinned):
                return _withheld(tool_id, drift)
            result = await server.call(pinned.name, self._arguments(tool, args), ctx, key if writes else None)
        except CallError as error:
            _log.warning("%s failed on MCP server %s: %r", tool_id, server.name, error)
            return error.response(server.name, writes=writes)
        reader = ResultReader(
            self.files, max_bytes=server.settings.max_result, max_file=self._settings.max_file
        )
        return await reader.response(result, writes=writes)

    def shown_files(self, data: Any) -> Sequence[ShownFile]:
        """Return the stored files among a result's attachments; links to other places are not included."""
        return attached_files(data)

    async def read_file(self, file_id: str) -> FileContent | None:
        """Read a file for a plugin that shows results."""
        found = await asyncio.to_thread(self.files.read, file_id)
        return None if found is None else FileContent(found[0].media_type, found[1])

    def reports(self) -> list[ServerReport]:
        """Return the state of each server that the settings or the registry name."""
        frozen = self._frozen_by_server()
        return [
            self._report(name, frozen.get(name, {})) for name in sorted({*frozen, *self._settings.servers})
        ]

    def _report(self, name: str, frozen: Mapping[str, Definition]) -> ServerReport:
        server, settings = self._servers.get(name), self._settings.servers.get(name)
        listed = (server.definitions or {}) if server else {}
        known = {pinned.name for pinned in frozen.values()}
        return ServerReport(
            name=name,
            address=settings.address if settings else None,
            state=server.state if server else ServerState.UNUSED,
            reason=server.reason if server else "",
            protocol=server.protocol if server else "",
            tools=tuple(ToolState(each, pinned.name, self._drift(pinned)) for each, pinned in frozen.items()),
            unfrozen=tuple(tool for tool in sorted(listed) if tool not in known),
        )

    @property
    def _registry(self) -> Any:
        if self._runtime is None:
            raise RuntimeError("the capability mcp was not started")
        return self._runtime.registry

    def _frozen_by_server(self) -> dict[str, dict[str, Definition]]:
        return frozen_definitions(self._registry.snapshot())

    def _arguments(self, tool: FrozenTool, args: dict[str, Any]) -> dict[str, Any]:
        parameters = dict(tool.manifest.parameters)
        if tool.manifest.tool_id not in self._converted_tools():
            return args
        shaped: dict[str, Any] = original_shape(args, parameters, parameters.get("$defs", {}))
        return shaped

    def _converted_tools(self) -> frozenset[str]:
        """Return the current registry's tools whose arguments have a different shape on the server."""
        registry = self._registry
        if self._wire_tools[0] != registry.version:
            marked = frozenset(
                tool_id
                for tool_id, tool in registry.snapshot().tools.items()
                if tool.origin and b'"x-wire"' in orjson.dumps(dict(tool.manifest.parameters))
            )
            self._wire_tools = registry.version, marked
        return self._wire_tools[1]

    def _compare(self, server: SupervisedServer) -> None:
        self._compare_tools(server.name)

    def _compare_tools(self, name: str) -> None:
        """Withhold a server's tools that differ from their frozen definitions, and offer the others."""
        registry = self._registry
        for tool_id, pinned in self._frozen_by_server().get(name, {}).items():
            if drift := self._drift(pinned):
                if registry.withheld.get(tool_id) != drift.reason:
                    detail = f": {'; '.join(drift.changes)}; {HOW_TO_ACCEPT}" if drift.changes else ""
                    _log.error("tool %s is withheld: it %s%s", tool_id, drift.reason, detail)
                registry.suspend(tool_id, drift.reason)
            else:
                registry.resume(tool_id)

    def _drift(self, pinned: Definition) -> ToolDrift | None:
        """Return how a tool differs from its frozen definition; None if no difference is known."""
        settings = self._settings.servers.get(pinned.server)
        if settings is None:
            return ToolDrift(f"belongs to the MCP server {pinned.server}, which is not in the settings")
        if not settings.offers(pinned.name):
            return ToolDrift(f"is excluded by the settings of the MCP server {pinned.server}")
        server = self._servers.get(pinned.server)
        if server is None or server.definitions is None:
            return None
        return compare(pinned, server.definitions)


def compare(pinned: Definition, listed: Mapping[str, Definition]) -> ToolDrift | None:
    """Return how a frozen tool differs from its server's current definition; None if it does not."""
    now = listed.get(pinned.name)
    if now is None:
        other = renamed(pinned.wire, (each.wire for each in listed.values()))
        reason = f"no longer exists under that name on the MCP server {pinned.server}"
        what = f"renamed to {visible(str(other['name']))!r}" if other else "removed"
        return ToolDrift(reason, (what,))
    if now.digest == pinned.digest:
        return None
    parts = " and ".join(changed_parts(pinned, now))
    reason = f"changed on the MCP server {pinned.server} since the build ({parts})"
    return ToolDrift(reason, tuple(definition_changes(pinned.wire, now.wire)))


def _withheld(tool_id: str, drift: ToolDrift) -> ToolResponse:
    return fail(
        ErrorType.NOT_FOUND,
        f"{tool_id!r} is withheld: it {drift.reason}.",
        suggestion="Continue without it. An operator can review the change and build the registry again.",
    )
