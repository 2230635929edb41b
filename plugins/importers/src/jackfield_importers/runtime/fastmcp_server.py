"""Calls the tools of a FastMCP server inside this process."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

from jackfield import ErrorType, ToolResponse, fail, ok

from .wire_arguments import wire_arguments

MAX_MESSAGE = 500


async def call(
    module: str, name: str, place: str, args: dict[str, Any], *, writes: bool, encoded: str = ""
) -> ToolResponse:
    """Call a tool on the server in the module's variable `place`."""
    from fastmcp import Client

    # The first import may read files, so it must not block the event loop.
    server = getattr(await asyncio.to_thread(importlib.import_module, module), place)
    arguments = wire_arguments(encoded, args) if encoded else args
    async with Client(server) as client:
        result = await client.call_tool(name, arguments, raise_on_error=False)
    if result.is_error:
        message = _text(result.content)[:MAX_MESSAGE] or "The tool failed."
        return fail(ErrorType.PERMANENT, message, partial_side_effects=writes)
    if result.structured_content is not None:
        return ok(result.structured_content)
    return ok({"result": _text(result.content)})


def _text(content: list[Any]) -> str:
    return "\n".join(getattr(each, "text", None) or f"[{each.type}]" for each in content)
