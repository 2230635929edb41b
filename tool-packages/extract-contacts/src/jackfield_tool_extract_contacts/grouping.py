"""Contacts: finds that the text puts together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from jackfield_tool_extract_contacts.finds import Email, Find, Name
from jackfield_tool_extract_contacts.layout import Layout, Line
from jackfield_tool_extract_contacts.names import is_capitalised, plain
from jackfield_tool_extract_contacts.vocabulary import CHANNELS, CONNECTORS

Group = list[Find]

_WORDS = re.compile(r"[^\W\d_]+(?:[-'\u2019][^\W\d_]+)*\.?")
_SENTENCE_END = re.compile(r"[!?…]\s|(?:^|\w{4})\.\s|[\u3002\uff01\uff1f]")
_OWNER = re.compile(r"[^\W\d_][^:\n]*[:\uff1a]\s*$")
_MOST_WORDS_BETWEEN = 6
_LONGEST_GAP = 80
_MOST_LINES_BETWEEN = 4
_LONGEST_LINE_BETWEEN = 60
_MOST_OF_A_KIND = 3


def grouped(text: str, layout: Layout, finds: Sequence[Find]) -> list[Group]:
    """The finds in groups of two and more; what stands alone is left out."""
    groups = [group for chain in _chains(text, layout, finds) for group in _undisputed(layout, chain)]
    return [group for group in groups if len({(find.kind, find.key) for find in group}) > 1]


def _chains(text: str, layout: Layout, finds: Sequence[Find]) -> list[Group]:
    chains: list[Group] = []
    reach = 0
    for find in sorted(finds, key=_owner_first):
        begins_owner = isinstance(find, Name)
        if chains and not begins_owner and _belongs(text, layout, chains[-1], reach, find):
            chains[-1].append(find)
            reach = max(reach, find.end)
        else:
            chains.append([find])
            reach = find.end
    return chains


def _owner_first(find: Find) -> tuple[int, bool]:
    """The order of the text, with a name before its address even where it is written after it."""
    if isinstance(find, Name) and find.owns:
        return min(find.start, find.owns.start), False
    return find.start, True


def _belongs(text: str, layout: Layout, chain: Group, reach: int, find: Find) -> bool:
    owner = chain[0] if isinstance(chain[0], Name) else None
    if owner and owner.owns and isinstance(find, Email):
        return owner.owns.key == find.key
    upper, lower = layout.line(reach - 1), layout.line(find.start)
    if upper is lower:
        # Where a name begins an entry, the words up to its first find have already been judged.
        return (len(chain) == 1 and owner is not None) or _is_glue(text[reach : find.start])
    if upper.block != lower.block or (lower.is_entry and layout.line(chain[0].start).is_entry):
        return False
    return (
        len(_WORDS.findall(text[reach : upper.end])) <= _MOST_WORDS_BETWEEN
        and _is_head(text[lower.start : find.start], named=owner is not None)
        and _are_short(layout.between(reach - 1, find.start))
    )


def _is_glue(gap: str) -> bool:
    """Whether the words between two finds on a line hold them together."""
    words = _WORDS.findall(gap)
    if all(plain(word) in CHANNELS for word in words):
        return len(gap) <= _LONGEST_GAP
    if len(words) > _MOST_WORDS_BETWEEN or len(gap) > _LONGEST_GAP or _SENTENCE_END.search(gap):
        return False
    return all(plain(word) in CHANNELS | CONNECTORS or not is_capitalised(word) for word in words)


def _is_head(head: str, *, named: bool) -> bool:
    """Whether the beginning of a line names a channel, or at least nobody else."""
    words = _WORDS.findall(head)
    if all(plain(word) in CHANNELS for word in words):
        return True
    return named and len(words) <= _MOST_WORDS_BETWEEN and not _OWNER.search(head)


def _are_short(lines: Iterable[Line]) -> bool:
    between = [line.text.strip() for line in lines]
    return len(between) <= _MOST_LINES_BETWEEN and all(
        len(line) <= _LONGEST_LINE_BETWEEN and not line.endswith((".", "!", "?")) for line in between
    )


def _undisputed(layout: Layout, group: Group) -> list[Group]:
    """The group, or those of its lines that can be one contact, where the group is rather a list."""
    if _has_one_owner(group):
        return [group]
    lines: dict[int, Group] = {}
    for find in group:
        lines.setdefault(layout.index(find.start), []).append(find)
    return [line for line in lines.values() if _has_one_owner(line)]


def _has_one_owner(group: Group) -> bool:
    """Whether a name holds the group together or else it has one address at most, and few other things."""
    if any(isinstance(find, Name) for find in group):
        return True
    counts = Counter(kind for kind, _ in {(find.kind, find.key) for find in group})
    return len(counts) > 1 and counts["emails"] <= 1 and max(counts.values()) <= _MOST_OF_A_KIND
