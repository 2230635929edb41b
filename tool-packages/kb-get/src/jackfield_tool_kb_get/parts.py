"""Splits a long text into parts."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """A part of a text, and the offset of the next part."""

    text: str
    next_offset: int | None


def part(text: str, offset: int, most: int) -> Part:
    """Return the part that begins at an offset; it ends between words if possible."""
    end = offset + most
    if end >= len(text):
        return Part(text[offset:], None)
    gap = max(text.rfind(" ", offset, end), text.rfind("\n", offset, end))
    if gap > offset + most // 2:
        end = gap + 1
    return Part(text[offset:end], end)
