"""The tools as MCP declares them, and their pages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import mcp_types as t
from jackfield.contract.context import Mode
from jackfield.registry.registry import RegisteredTool, Registry
from jackfield.toolsets import Toolset
from mcp.shared.exceptions import MCPError

RESULT = "result"
"""The member that holds data other than an object, because structured content has to be an object."""


MAX_LISTS = 1000
"""How many lists of tools are kept; there is one for each mode and toolset."""


class ToolPages:
    """Pages of the tools that a mode and a toolset offer; they are built again when the registry changes."""

    def __init__(self, registry: Registry, page_size: int) -> None:
        self._registry = registry
        self._page_size = page_size
        self._declared_of: Mapping[str, RegisteredTool] | None = None
        self._declared: dict[tuple[Mode, str], list[t.Tool]] = {}

    def page(self, mode: Mode, cursor: str | None, toolset: Toolset | None = None) -> t.ListToolsResult:
        """Return the tools after a cursor; raise `MCPError` if the cursor is not valid."""
        tools = self._tools(mode, toolset)
        first = 0
        if cursor is not None:
            last = _decode_cursor(cursor)
            first = sum(tool.name <= last for tool in tools)
        shown = tools[first : first + self._page_size]
        more = first + self._page_size < len(tools)
        return t.ListToolsResult(tools=shown, next_cursor=_encode_cursor(shown[-1].name) if more else None)

    def _tools(self, mode: Mode, toolset: Toolset | None) -> list[t.Tool]:
        # The registry replaces its mapping with every change, so the same one holds the same tools.
        if self._declared_of is not self._registry.tools or len(self._declared) >= MAX_LISTS:
            self._declared_of = self._registry.tools
            self._declared.clear()
        key = mode, toolset.key if toolset else ""
        if key not in self._declared:
            offered = self._registry.catalog(toolset).offered(mode)
            self._declared[key] = sorted(map(declare, offered), key=lambda tool: tool.name)
        return self._declared[key]


def declare(tool: RegisteredTool) -> t.Tool:
    """Return the declaration of a tool."""
    manifest = tool.manifest
    return t.Tool(
        name=tool.id,
        title=tool.id.replace("_", " ").capitalize(),
        description=manifest.description,
        input_schema=dict(manifest.parameters),
        output_schema=output_schema(manifest.returns),
        annotations=t.ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=manifest.writes,
            idempotent_hint=manifest.idempotent,
            open_world_hint=manifest.side_effects != "none",
        ),
    )


def output_schema(returns: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the schema of structured content for a tool's `returns`; None if there is no `returns`."""
    if returns is None:
        return None
    if returns.get("type") == "object":
        return dict(returns)
    # References start at the root of the schema, so the definitions stay there.
    inner = {name: value for name, value in returns.items() if name not in ("$defs", "$schema")}
    outer = {name: returns[name] for name in ("$defs", "$schema") if name in returns}
    return {**outer, "type": "object", "properties": {RESULT: inner}, "required": [RESULT]}


def structured_content(data: Any, returns: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the data of a call in the form of `output_schema`."""
    is_object = isinstance(data, dict) and (returns is None or returns.get("type") == "object")
    return data if is_object else {RESULT: data}


def _encode_cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _decode_cursor(cursor: str) -> str:
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return raw.decode()
    except (binascii.Error, ValueError):
        message = "The cursor is not valid; send `nextCursor` of the previous page unchanged."
        raise MCPError(t.INVALID_PARAMS, message) from None
