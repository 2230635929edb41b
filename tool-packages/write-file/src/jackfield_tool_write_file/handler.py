"""Writes a file atomically."""

from __future__ import annotations

from typing import Any

from jackfield import ToolContext, ToolResponse, ok
from jackfield_capability_types.workspace import WorkspaceView

_LONGEST_DIFF = 2500


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Write the file."""
    workspace: WorkspaceView = ctx.workspace
    change = await workspace.write(args["path"], args["content"], overwrite=args["overwrite"])
    data: dict[str, Any] = {"path": change.path, "status": change.status, "lines": change.lines}
    if change.diff:
        data["diff"] = _short(change.diff)
    ctx.audit("file_written", path=change.path, status=change.status, lines=change.lines)
    return ok(data)


def _short(diff: str) -> str:
    if len(diff) <= _LONGEST_DIFF:
        return diff
    return f"{diff[:_LONGEST_DIFF]}\n[... {len(diff) - _LONGEST_DIFF} characters left out ...]"
