"""Finds files by a path pattern."""

from __future__ import annotations

from typing import Any

from jackfield import ToolContext, ToolResponse, ok
from jackfield.speech import LINE, VOICE_LIMIT, characters
from jackfield_capability_types.workspace import FoundFile, WorkspaceView

_SPOKEN = 5
"""The maximum number of files in a voice answer."""


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Find the files; no match is an empty list."""
    workspace: WorkspaceView = ctx.workspace
    spoken = ctx.session.mode == "voice"
    listing = await workspace.glob(
        args["pattern"],
        folder=args["path"],
        limit=min(args["limit"], _SPOKEN) if spoken else args["limit"],
        include_ignored=args["include_ignored"],
    )
    files = _speakable(listing.files) if spoken else [_facts(each) for each in listing.files]
    data: dict[str, Any] = {
        "count": listing.count,
        "files": files,
        "truncated": listing.count > len(files),
    }
    if listing.notices:
        data["notices"] = list(listing.notices)
    ctx.audit("files_found", count=listing.count)
    return ok(data)


def _facts(found: FoundFile) -> dict[str, Any]:
    modified = found.modified.isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"path": found.path, "size": found.size, "modified": modified}


def _speakable(files: tuple[FoundFile, ...]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = [{"path": each.path} for each in files]
    while len(kept) > 1 and characters(kept) > VOICE_LIMIT - 4 * LINE:
        kept.pop()
    return kept
