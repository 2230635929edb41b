"""The entries of one stream in memory.

A host keeps thousands of short streams and a few long ones. An entry costs little more than its bytes: ids
are not stored, because they are consecutive, and times are stored in arrays. Entries are stored in blocks;
full blocks do not grow any more, because a long list that grows leaves holes in memory as large as itself.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

BLOCK_ENTRIES = 128
"""The number of entries in a full block."""

_NEVER = float("inf")


class _Block:
    """Consecutive entries, each with the time at which it expires."""

    __slots__ = ("expiries", "next_expiry", "values")

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        """An entry that has expired is None, so that its bytes can be freed."""
        self.expiries = array("d")
        self.next_expiry = _NEVER
        """The time at which the next entry expires."""

    @property
    def is_empty(self) -> bool:
        """True if all entries have been removed."""
        return all(value is None for value in self.values)

    def remove_expired(self, now: float) -> list[bytes]:
        """Remove the entries that have expired, and return them."""
        removed: list[bytes] = []
        self.next_expiry = _NEVER
        for place, (value, expires) in enumerate(zip(self.values, self.expiries, strict=True)):
            if value is None:
                continue
            if expires <= now:
                self.values[place] = None
                removed.append(value)
            else:
                self.next_expiry = min(self.next_expiry, expires)
        return removed


class StreamEntries:
    """Entries with consecutive ids; all blocks except the last one are full."""

    __slots__ = ("_blocks", "_first", "bytes", "count", "next_expiry")

    def __init__(self, last: int) -> None:
        """`last` is the highest id that the stream has already used."""
        self._first = last + 1
        """The id of the first entry of the first block."""
        self._blocks = [_Block()]
        self.next_expiry = _NEVER
        """The time at which the next entry expires."""
        self.count = self.bytes = 0
        """The number of entries that have not been removed, and the sum of their lengths."""

    @property
    def last(self) -> int:
        """The highest id that the stream has used."""
        return self._first + (len(self._blocks) - 1) * BLOCK_ENTRIES + len(self._blocks[-1].values) - 1

    @property
    def is_empty(self) -> bool:
        """True if all entries have been removed."""
        return not self.count

    def append(self, value: bytes, expires: float) -> int:
        """Append an entry and return its id."""
        block = self._blocks[-1]
        if len(block.values) == BLOCK_ENTRIES:
            block = _Block()
            self._blocks.append(block)
        block.values.append(value)
        block.expiries.append(expires)
        if expires < block.next_expiry:
            block.next_expiry = expires
            self.next_expiry = min(self.next_expiry, expires)
        self.count += 1
        self.bytes += len(value)
        return self.last

    def read(self, after: int, limit: int, now: float) -> list[tuple[int, bytes]]:
        """Return up to `limit` current entries with ids above `after`, oldest first."""
        found: list[tuple[int, bytes]] = []
        for number, value, expires in self._entries_after(after):
            if len(found) >= limit:
                break
            if value is not None and expires > now:
                found.append((number, value))
        return found

    def _entries_after(self, after: int) -> Iterator[tuple[int, bytes | None, float]]:
        """Yield the ids above `after`, each with its entry and expiry."""
        number = max(after + 1, self._first)
        block_number, place = divmod(number - self._first, BLOCK_ENTRIES)
        for block in self._blocks[block_number:]:
            for value, expires in zip(block.values[place:], block.expiries[place:], strict=True):
                yield number, value, expires
                number += 1
            place = 0

    def count_current(self, now: float) -> int:
        """Return how many entries are current."""
        return sum(expires > now for block in self._blocks for expires in block.expiries)

    def is_readable(self, now: float) -> bool:
        """Return whether any entry is current; begin with the newest, which usually expire last."""
        return any(expires > now for block in reversed(self._blocks) for expires in reversed(block.expiries))

    def remove_expired(self, now: float) -> int:
        """Free the entries that have expired and return their number; their ids are not used again."""
        before = self.count
        for block in self._blocks:
            if block.next_expiry <= now:
                removed = block.remove_expired(now)
                self.count -= len(removed)
                self.bytes -= sum(map(len, removed))
        self.next_expiry = min(block.next_expiry for block in self._blocks)
        self._drop_empty_blocks()
        return before - self.count

    def _drop_empty_blocks(self) -> None:
        """Drop the full blocks at the beginning whose entries have all been removed."""
        dropped = 0
        for block in self._blocks[:-1]:
            if not block.is_empty:
                break
            dropped += 1
        del self._blocks[:dropped]
        self._first += dropped * BLOCK_ENTRIES
