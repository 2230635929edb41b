"""Searches the lines of files."""

from __future__ import annotations

from typing import Any

from jackfield import ToolContext, ToolResponse, ok
from jackfield.speech import LINE, VOICE_LIMIT, characters, plain
from jackfield_capability_types.workspace import Match, Search, WorkspaceView

_SPOKEN = 5
"""The maximum number of matches in a voice answer."""


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Search the files; no match is an empty list."""
    workspace: WorkspaceView = ctx.workspace
    spoken = ctx.session.mode == "voice"
    found = await workspace.grep(
        Search(
            args["pattern"],
            folder=args["path"],
            glob=args["glob"],
            literal=args["literal"],
            ignore_case=args["ignore_case"],
            context=0 if spoken else args["context"],
            limit=min(args["limit"], _SPOKEN) if spoken else args["limit"],
            include_ignored=args["include_ignored"],
        )
    )
    matches = _speakable(found.matches) if spoken else [_evidence(each) for each in found.matches]
    data: dict[str, Any] = {
        "matches": matches,
        "files": found.files,
        "truncated": found.more or len(matches) < len(found.matches),
    }
    if found.notices:
        data["notices"] = list(found.notices)
    ctx.audit("lines_found", matches=len(found.matches), files=found.files)
    return ok(data)


def _evidence(match: Match) -> dict[str, Any]:
    evidence: dict[str, Any] = {"path": match.path, "line": match.line, "text": match.text}
    if match.before:
        evidence["before"] = list(match.before)
    if match.after:
        evidence["after"] = list(match.after)
    return evidence


def _speakable(matches: tuple[Match, ...]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = [
        {"path": each.path, "line": each.line, "text": plain(each.text)[:LINE]} for each in matches
    ]
    while len(kept) > 1 and characters(kept) > VOICE_LIMIT - 4 * LINE:
        kept.pop()
    return kept
