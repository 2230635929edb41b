"""Duplicate results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackfield_tool_rank_results.items import Item
    from jackfield_tool_rank_results.ranking import Ranked

# Minimum share of the shorter snippet's words in the longer one if both come from the same text.
SAME_TEXT = 0.8


@dataclass(slots=True)
class Kept:
    """A result that is kept, with its omitted duplicates."""

    ranked: Ranked
    dropped: list[Ranked] = field(default_factory=list)

    @property
    def same_as(self) -> list[str]:
        """The other ids of this result, best first."""
        ids = dict.fromkeys(ranked.item.id for ranked in self.dropped)
        return [id_ for id_ in ids if id_ != self.ranked.item.id]


def deduplicated(ranked: Iterable[Ranked]) -> list[Kept]:
    """Return the best of each group of duplicates, in the given order."""
    kept: list[Kept] = []
    for candidate in ranked:
        original = next((each for each in kept if same(each.ranked.item, candidate.item)), None)
        if original:
            original.dropped.append(candidate)
        else:
            kept.append(Kept(candidate))
    return kept


def same(one: Item, other: Item) -> bool:
    """Return whether two items have the same id, or the same title and no distinguishing details.

    A title alone proves little ("Meeting notes"), so different types or snippets keep two results apart.
    """
    if one.id == other.id:
        return True
    if _title(one) != _title(other):
        return False
    if one.kind and other.kind and one.kind != other.kind:
        return False
    shorter, longer = sorted((set(one.snippet_words), set(other.snippet_words)), key=len)
    return len(shorter & longer) >= SAME_TEXT * len(shorter)


def _title(item: Item) -> list[str] | str:
    return sorted(item.title_words) or item.title
