"""Calls a tool on its server."""

from __future__ import annotations

from typing import Any

from jackfield import ToolContext, ToolResponse


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Call the tool under its original name."""
    response: ToolResponse = await ctx.mcp.call(ctx.tool_id, args, ctx, ctx.idempotency_key)
    return response
