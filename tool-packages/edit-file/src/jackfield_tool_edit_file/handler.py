"""Replaces text in a file."""

from __future__ import annotations

from typing import Any

from jackfield import ToolContext, ToolResponse, ok
from jackfield_capability_types.workspace import WorkspaceView

_LONGEST_DIFF = 2500


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Replace the text."""
    workspace: WorkspaceView = ctx.workspace
    change = await workspace.edit(
        args["path"], args["old_text"], args["new_text"], replace_all=args["replace_all"]
    )
    ctx.audit("file_edited", path=change.path, replacements=change.replacements)
    return ok(
        {
            "path": change.path,
            "replacements": change.replacements,
            "lines": change.lines,
            "diff": _short(change.diff),
        }
    )


def _short(diff: str) -> str:
    if len(diff) <= _LONGEST_DIFF:
        return diff
    return f"{diff[:_LONGEST_DIFF]}\n[... {len(diff) - _LONGEST_DIFF} characters left out ...]"
