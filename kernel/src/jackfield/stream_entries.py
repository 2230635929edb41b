"""The entries of one stream in memory.

A host keeps thousands of short streams, so an entry costs little more than its bytes: ids are not stored,
because they are consecutive, and times are stored in an array.
"""

from __future__ import annotations

from array import array

_NEVER = float("inf")


class StreamEntries:
    """Entries with consecutive ids, each with the time at which it expires."""

    __slots__ = ("_expiries", "_first", "_values", "bytes", "count", "next_expiry")

    def __init__(self, last: int) -> None:
        """`last` is the highest id that the stream has already used."""
        self._first = last + 1
        self._values: list[bytes | None] = []
        """An entry that expired before an older one is None, so that its bytes can be freed."""
        self._expiries = array("d")
        self.next_expiry = _NEVER
        """The time at which the next entry expires."""
        self.count = self.bytes = 0
        """The number of entries that have not been removed, and the sum of their lengths."""

    @property
    def last(self) -> int:
        """The highest id that the stream has used."""
        return self._first + len(self._values) - 1

    @property
    def is_empty(self) -> bool:
        """True if all entries have been removed."""
        return not self._values

    def append(self, value: bytes, expires: float) -> int:
        """Append an entry and return its id."""
        self._values.append(value)
        self._expiries.append(expires)
        self.next_expiry = min(self.next_expiry, expires)
        self.count += 1
        self.bytes += len(value)
        return self._first + len(self._values) - 1

    def read(self, after: int, limit: int, now: float) -> list[tuple[int, bytes]]:
        """Return up to `limit` current entries with ids above `after`, oldest first."""
        found: list[tuple[int, bytes]] = []
        for place in range(max(0, after + 1 - self._first), len(self._values)):
            if len(found) >= limit:
                break
            value = self._values[place]
            if value is not None and self._expiries[place] > now:
                found.append((self._first + place, value))
        return found

    def count_current(self, now: float) -> int:
        """Return how many entries are current."""
        return sum(expires > now for expires in self._expiries)

    def is_readable(self, now: float) -> bool:
        """Return whether any entry is current; begin with the newest, which usually expire last."""
        return any(expires > now for expires in reversed(self._expiries))

    def remove_expired(self, now: float) -> int:
        """Free the entries that have expired and return their number; their ids are not used again."""
        removed, kept = 0, len(self._values)
        self.next_expiry = _NEVER
        for place, value in enumerate(self._values):
            if value is None:
                continue
            expires = self._expiries[place]
            if expires <= now:
                self._values[place] = None
                self.bytes -= len(value)
                removed += 1
            else:
                kept = min(kept, place)
                self.next_expiry = min(self.next_expiry, expires)
        del self._values[:kept], self._expiries[:kept]
        self._first += kept
        self.count -= removed
        return removed
