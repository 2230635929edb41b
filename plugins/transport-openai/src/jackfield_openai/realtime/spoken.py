"""How much was sent of what the model said, so that it can be cut where it was heard."""

from __future__ import annotations

from collections import OrderedDict

_BYTES_A_MS = 48
_MOST = 64
"""So many items are remembered; only the last can still be playing."""


class Spoken:
    """The length of every item of sound."""

    def __init__(self) -> None:
        self._bytes: OrderedDict[str, int] = OrderedDict()

    def add(self, item: str, length: int) -> None:
        """More bytes of an item."""
        if item in self._bytes:
            self._bytes[item] += length
            return
        self._bytes[item] = length
        if len(self._bytes) > _MOST:
            self._bytes.popitem(last=False)

    def clamped(self, item: str, heard_ms: int) -> int | None:
        """The milliseconds of an item that can have been heard; None for one that is not known."""
        sent = self._bytes.get(item)
        return None if sent is None else max(0, min(heard_ms, sent // _BYTES_A_MS))

    def forget(self, item: str) -> None:
        """An item that is no more."""
        self._bytes.pop(item, None)

    def cut(self, item: str, heard_ms: int) -> None:
        """An item that ends earlier now."""
        self._bytes[item] = heard_ms * _BYTES_A_MS
