"""Places in the text that are already taken."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from jackfield_tool_extract_contacts.finds import Find

# Neither a letter nor a digit nor anything that may stand inside a phone number.
COVERED = "\ufffc"


class Cover:
    """What some finds take up; they are sorted and do not overlap."""

    def __init__(self, finds: Sequence[Find]) -> None:
        self._starts = [find.start for find in finds]
        self._ends = [find.end for find in finds]

    def __call__(self, offset: int) -> bool:
        """Whether the offset lies inside one of them."""
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]

    def touches(self, find: Find) -> bool:
        """Whether the find overlaps one of them."""
        index = bisect_right(self._starts, find.end - 1) - 1
        return index >= 0 and find.start < self._ends[index]


def covered(text: str, finds: Iterable[Find]) -> str:
    """The text, as long as before, with the finds made unreadable."""
    pieces = []
    position = 0
    for find in finds:
        pieces += [text[position : find.start], COVERED * (find.end - find.start)]
        position = find.end
    return "".join(pieces) + text[position:]
