"""Reads as many lines of a file as fit into an answer."""

from __future__ import annotations

from typing import Any

from jackfield import ToolContext, ToolResponse, ok
from jackfield.speech import characters, plain
from jackfield_capability_types.workspace import Passage, WorkspaceView

_ROOM = 3000
"""Characters of JSON for the lines: a model gets at most 4000 of an answer."""

_SPOKEN = 900
_LONGEST_LINE = 1000


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Read the lines."""
    workspace: WorkspaceView = ctx.workspace
    passage = await workspace.read(args["path"], first=args["offset"], limit=args["limit"])
    spoken = ctx.session.mode == "voice"
    lines, shortened = _fitting(passage, _SPOKEN if spoken else _ROOM)
    last = passage.first + len(lines) - 1
    data: dict[str, Any] = {
        "path": passage.path,
        "content": plain(" ".join(lines)) if spoken else _numbered(lines, passage.first),
        "first_line": passage.first,
        "last_line": last,
        "total_lines": passage.total,
        "next_offset": last + 1 if last < passage.total else None,
    }
    if passage.encoding != "utf-8":
        data["encoding"] = passage.encoding
    if shortened:
        data["shortened_lines"] = shortened
    ctx.audit("file_read", path=passage.path, lines=len(lines))
    return ok(data)


def _fitting(passage: Passage, room: int) -> tuple[list[str], list[int]]:
    """Return as many lines as fit, at least one, and the numbers of shortened lines."""
    kept: list[str] = []
    shortened: list[int] = []
    longest = min(room // 2, _LONGEST_LINE)
    for number, line in enumerate(passage.lines, passage.first):
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
