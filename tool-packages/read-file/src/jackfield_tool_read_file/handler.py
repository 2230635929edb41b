"""Reads as many lines of a file as fit into an answer."""

from __future__ import annotations

from typing import Any

from jackfield import ToolContext, ToolResponse, ok
from jackfield.speech import characters, plain
from jackfield_capability_types.workspace import Excerpt, WorkspaceView

_ROOM = 3000
"""Characters of JSON for the lines: a model gets at most 4000 characters of an answer."""

_SPOKEN = 900
_LONGEST_LINE = 1000


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Read the lines."""
    workspace: WorkspaceView = ctx.workspace
    excerpt = await workspace.read(args["path"], first=args["offset"], limit=args["limit"])
    spoken = ctx.session.mode == "voice"
    lines, shortened = _fitting(excerpt, _SPOKEN if spoken else _ROOM)
    last = excerpt.first + len(lines) - 1
    data: dict[str, Any] = {
        "path": excerpt.path,
        "content": plain(" ".join(lines)) if spoken else _numbered(lines, excerpt.first),
        "first_line": excerpt.first,
        "last_line": last,
        "total_lines": excerpt.total,
        "next_offset": last + 1 if last < excerpt.total else None,
    }
    if excerpt.encoding != "utf-8":
        data["encoding"] = excerpt.encoding
    if shortened:
        data["shortened_lines"] = shortened
    ctx.audit("file_read", path=excerpt.path, lines=len(lines))
    return ok(data)


def _fitting(excerpt: Excerpt, room: int) -> tuple[list[str], list[int]]:
    """Return as many lines as fit, at least one, and the numbers of shortened lines."""
    kept: list[str] = []
    shortened: list[int] = []
    longest = min(room // 2, _LONGEST_LINE)
    for number, line in enumerate(excerpt.lines, excerpt.first):
        short = line if len(line) <= longest else f"{line[:longest]}..."
        room -= characters(f"{number}{short}") + 2
        if kept and room < 0:
            break
        kept.append(short)
        if short != line:
            shortened.append(number)
    return kept, shortened


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, first))
