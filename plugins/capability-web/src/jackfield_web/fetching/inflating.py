"""Bodies as they were before they were compressed, up to a limit.

A few kilobytes can be made to swell to gigabytes, so nothing is decompressed that there is no room for.
"""

from __future__ import annotations

import zlib

ACCEPTED = "gzip, deflate"
"""What a server is told it may compress with."""

_PLAIN = ("", "identity")
_COMPRESSED = ("gzip", "x-gzip", "deflate")
_EITHER_HEADER = zlib.MAX_WBITS | 32


class UnknownEncodingError(Exception):
    """A body that was compressed in a way nobody asked for."""


class DamagedError(Exception):
    """A body that cannot be decompressed."""


class Body:
    """What has come so far."""

    def __init__(self, encoding: str, limit: int) -> None:
        name = encoding.strip().lower()
        if name not in (*_PLAIN, *_COMPRESSED):
            raise UnknownEncodingError
        self._limit = limit
        self._taken = bytearray()
        self._compressed = name in _COMPRESSED
        self._inflating = zlib.decompressobj(_EITHER_HEADER)
        self._received = 0
        self.cut = False

    @property
    def content(self) -> bytes:
        """All that was taken."""
        return bytes(self._taken)

    def add(self, chunk: bytes) -> bool:
        """Take what there is room for; whether more can be taken."""
        self._received += len(chunk)
        room = self._limit - len(self._taken)
        # One more than fits tells a body that is just as long as the limit from one that is longer.
        taken = self._inflated(chunk, room + 1) if self._compressed else chunk
        self._taken += taken[:room]
        self.cut = len(taken) > room or self._received > self._limit
        return not self.cut

    def _inflated(self, chunk: bytes, room: int) -> bytes:
        first = self._received == len(chunk)
        try:
            return self._members(chunk, room)
        except zlib.error:
            if not first:
                raise DamagedError from None
        # Some servers say deflate and send it without its header.
        self._inflating = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            return self._members(chunk, room)
        except zlib.error:
            raise DamagedError from None

    def _members(self, chunk: bytes, room: int) -> bytes:
        """What was compressed in one piece or in several, one behind the other."""
        inflated = self._inflating.decompress(chunk, room)
        while self._inflating.eof and (rest := self._inflating.unused_data.lstrip(b"\0")):
            if len(inflated) >= room:
                break
            self._inflating = zlib.decompressobj(_EITHER_HEADER)
            inflated += self._inflating.decompress(rest, room - len(inflated))
        return inflated
