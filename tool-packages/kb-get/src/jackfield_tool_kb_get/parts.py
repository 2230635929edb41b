"""A long text, a part at a time."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """A stretch of a text, and where the text goes on."""

    text: str
    next_offset: int | None


def part(text: str, offset: int, most: int) -> Part:
    """The stretch that begins at an offset, ended between words where there are any."""
    end = offset + most
    if end >= len(text):
        return Part(text[offset:], None)
    gap = max(text.rfind(" ", offset, end), text.rfind("\n", offset, end))
    if gap > offset + most // 2:
        end = gap + 1
    return Part(text[offset:end], end)
