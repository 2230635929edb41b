"""Groups of entities that belong to one contact."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from jackfield_tool_extract_contacts.entities import Email, Entity, Name
from jackfield_tool_extract_contacts.layout import Layout, Line
from jackfield_tool_extract_contacts.names import is_capitalised, plain
from jackfield_tool_extract_contacts.word_lists import CHANNELS, CONNECTORS

Group = list[Entity]

_WORDS = re.compile(r"[^\W\d_]+(?:[-'\u2019][^\W\d_]+)*\.?")
_SENTENCE_END = re.compile(r"[!?…]\s|(?:^|\w{4})\.\s|[\u3002\uff01\uff1f]")
_OWNER = re.compile(r"[^\W\d_][^:\n]*[:\uff1a]\s*$")
_MOST_WORDS_BETWEEN = 6
_LONGEST_GAP = 80
_MOST_LINES_BETWEEN = 4
_LONGEST_LINE_BETWEEN = 60
_MOST_OF_A_KIND = 3


def group_entities(text: str, layout: Layout, entities: Sequence[Entity]) -> list[Group]:
    """Return the entities in groups of at least two; single entities are omitted."""
    groups = [group for chain in _chains(text, layout, entities) for group in _undisputed(layout, chain)]
    return [group for group in groups if len({(entity.kind, entity.key) for entity in group}) > 1]


def _chains(text: str, layout: Layout, entities: Sequence[Entity]) -> list[Group]:
    chains: list[Group] = []
    reach = 0
    for entity in sorted(entities, key=_owner_first):
        begins_owner = isinstance(entity, Name)
        if chains and not begins_owner and _belongs(text, layout, chains[-1], reach, entity):
            chains[-1].append(entity)
            reach = max(reach, entity.end)
        else:
            chains.append([entity])
            reach = entity.end
    return chains


def _owner_first(entity: Entity) -> tuple[int, bool]:
    """Sort by position, but a name before its address even if it is written after it."""
    if isinstance(entity, Name) and entity.owns:
        return min(entity.start, entity.owns.start), False
    return entity.start, True


def _belongs(text: str, layout: Layout, chain: Group, reach: int, entity: Entity) -> bool:
    owner = chain[0] if isinstance(chain[0], Name) else None
    if owner and owner.owns and isinstance(entity, Email):
        return owner.owns.key == entity.key
    upper, lower = layout.line(reach - 1), layout.line(entity.start)
    if upper is lower:
        # Where a name begins an entry, the words up to its first entity have already been checked.
        return (len(chain) == 1 and owner is not None) or _is_glue(text[reach : entity.start])
    if upper.block != lower.block or (lower.is_entry and layout.line(chain[0].start).is_entry):
        return False
    return (
        len(_WORDS.findall(text[reach : upper.end])) <= _MOST_WORDS_BETWEEN
        and _is_head(text[lower.start : entity.start], named=owner is not None)
        and _are_short(layout.between(reach - 1, entity.start))
    )


def _is_glue(gap: str) -> bool:
    """Return whether the words between two entities on a line connect them."""
    words = _WORDS.findall(gap)
    if all(plain(word) in CHANNELS for word in words):
        return len(gap) <= _LONGEST_GAP
    if len(words) > _MOST_WORDS_BETWEEN or len(gap) > _LONGEST_GAP or _SENTENCE_END.search(gap):
        return False
    return all(plain(word) in CHANNELS | CONNECTORS or not is_capitalised(word) for word in words)


def _is_head(head: str, *, named: bool) -> bool:
    """Return whether the beginning of a line names a channel, or at least no other person."""
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
    """Return the group, or, if it is a list, those of its lines that can be one contact."""
    if _has_one_owner(group):
        return [group]
    lines: dict[int, Group] = {}
    for entity in group:
        lines.setdefault(layout.index(entity.start), []).append(entity)
    return [line for line in lines.values() if _has_one_owner(line)]


def _has_one_owner(group: Group) -> bool:
    """Return whether the group has a name, or else at most one address and few other entities."""
    if any(isinstance(entity, Name) for entity in group):
        return True
    counts = Counter(kind for kind, _ in {(entity.kind, entity.key) for entity in group})
    return len(counts) > 1 and counts["emails"] <= 1 and max(counts.values()) <= _MOST_OF_A_KIND
