"""Finds the keys that may have expired without looking at the others.

The keys in the queue are grouped by expiry, in spans of `SPAN_SECONDS`. A key may be renewed, replaced or
removed while it is in the queue; the caller that takes it out has to check its current expiry.
"""

from __future__ import annotations

import heapq

SPAN_SECONDS = 60.0
"""The length of a span; the keys that expire within one span are taken out together."""


class ExpiryQueue:
    """Keys, ordered roughly by the time at which they expire."""

    __slots__ = ("_groups", "_numbers", "due")

    def __init__(self) -> None:
        self._groups: dict[int, list[str]] = {}
        self._numbers: list[int] = []
        self.due = float("inf")
        """The time at which all keys of the first group have expired."""

    def add(self, key: str, expires: float) -> None:
        """Add a key that expires at a finite time."""
        number = int(expires // SPAN_SECONDS)
        group = self._groups.get(number)
        if group is None:
            group = self._groups[number] = []
            heapq.heappush(self._numbers, number)
            self.due = (self._numbers[0] + 1) * SPAN_SECONDS
        group.append(key)

    def take(self, now: float) -> set[str]:
        """Remove and return the keys that were added with an expiry up to now, and a few that expire soon."""
        taken: set[str] = set()
        while self._numbers and self._numbers[0] * SPAN_SECONDS <= now:
            taken.update(self._groups.pop(heapq.heappop(self._numbers)))
        self.due = (self._numbers[0] + 1) * SPAN_SECONDS if self._numbers else float("inf")
        return taken
