"""A mapping from text to values that lists its keys by prefix without a scan.

The keys are kept twice: in a dict for lookups, and sorted in chunks. Adding or removing a key moves the rest
of one chunk, so the cost hardly depends on the number of keys. Replacing a value moves nothing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

MAX_CHUNK = 512
"""Keys per chunk; a larger chunk is split in half."""

Value = TypeVar("Value")


class PrefixMap(Generic[Value]):
    """A mapping with sorted text keys."""

    __slots__ = ("_chunks", "_ends", "_items", "get", "items")

    def __init__(self) -> None:
        self._items: dict[str, Value] = {}
        # Invariant: the chunks are sorted, not empty, and their concatenation is sorted.
        self._chunks: list[list[str]] = []
        self._ends: list[str] = []
        """The last key of every chunk."""
        self.get = self._items.get
        """Return the value of a key, or None."""
        self.items = self._items.items
        """Return a view of all keys and values, in no particular order."""

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[str]:
        """Iterate over all keys, sorted; the mapping must not change meanwhile."""
        for chunk in self._chunks:
            yield from chunk

    def __getitem__(self, key: str) -> Value:
        return self._items[key]

    def __setitem__(self, key: str, value: Value) -> None:
        items = self._items
        if key not in items:
            self._insert(key)
        items[key] = value

    def __delitem__(self, key: str) -> None:
        del self._items[key]
        self._remove(key)

    def pop(self, key: str) -> Value | None:
        """Remove a key and return its value; None if it is absent."""
        if key not in self._items:
            return None
        self._remove(key)
        return self._items.pop(key)

    def with_prefix(self, prefix: str) -> list[str]:
        """Return the keys with a prefix, sorted by code point."""
        found: list[str] = []
        first = bisect_left(self._ends, prefix)
        for number in range(first, len(self._chunks)):
            chunk = self._chunks[number]
            start = bisect_left(chunk, prefix) if number == first else 0
            if chunk[-1].startswith(prefix):
                # The keys with a prefix are consecutive.
                found += chunk[start:]
                continue
            for place in range(start, len(chunk)):
                if not chunk[place].startswith(prefix):
                    found += chunk[start:place]
                    break
            break
        return found

    def _insert(self, key: str) -> None:
        chunks, ends = self._chunks, self._ends
        number = bisect_left(ends, key)
        if number == len(ends):
            if not ends:
                chunks.append([key])
                ends.append(key)
                return
            number -= 1
            chunk = chunks[number]
            chunk.append(key)
            ends[number] = key
        else:
            chunk = chunks[number]
            insort(chunk, key)
        if len(chunk) > MAX_CHUNK:
            half = len(chunk) // 2
            chunks.insert(number + 1, chunk[half:])
            ends.insert(number, chunk[half - 1])
            del chunk[half:]

    def _remove(self, key: str) -> None:
        number = bisect_left(self._ends, key)
        chunk = self._chunks[number]
        del chunk[bisect_left(chunk, key)]
        if not chunk:
            del self._chunks[number], self._ends[number]
        elif key == self._ends[number]:
            self._ends[number] = chunk[-1]
