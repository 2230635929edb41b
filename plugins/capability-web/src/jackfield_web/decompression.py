"""Bodies as they were before they were compressed, up to a limit.

A few kilobytes can be made to swell to gigabytes, so nothing is decompressed that there is no room for.
"""

from __future__ import annotations

import zlib

ACCEPTED = "gzip, deflate"
"""What a server is told it may compress with."""

_PLAIN = ("", "identity")
_COMPRESSED = ("gzip", "x-gzip", "deflate")
# What does not compress grows a little; what goes on and on without becoming anything is not waited for.
_MOST_RECEIVED = 2
_EITHER_HEADER = zlib.MAX_WBITS | 32


class UnknownEncodingError(Exception):
    """A body that was compressed in a way nobody asked for."""


class CorruptBodyError(Exception):
    """A body that cannot be decompressed."""


class ResponseBody:
    """What has come so far."""

    def __init__(self, encoding: str, limit: int) -> None:
        name = encoding.strip().lower()
        if name not in (*_PLAIN, *_COMPRESSED):
            raise UnknownEncodingError
        self._limit = limit
        self._taken = bytearray()
        self._received = 0
        self._compressed = name in _COMPRESSED
        self._header = b""
        self._inflating: zlib._Decompress | None = None
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
        self.cut = len(taken) > room or self._received > _MOST_RECEIVED * self._limit + 1024
        return not self.cut

    def _inflated(self, chunk: bytes, room: int) -> bytes:
        if self._inflating is None:
            self._header += chunk
            if len(self._header) < 2:
                return b""
            chunk = self._header
            self._inflating = zlib.decompressobj(_window(chunk))
        try:
            inflated = self._inflating.decompress(chunk, room)
        except zlib.error:
            raise CorruptBodyError from None
        # What was compressed in several pieces, one behind the other.
        while self._inflating.eof and (rest := self._inflating.unused_data) and len(inflated) < room:
            self._inflating = zlib.decompressobj(_EITHER_HEADER)
            try:
                inflated += self._inflating.decompress(rest, room - len(inflated))
            except zlib.error:
                raise CorruptBodyError from None
        return inflated


def _window(beginning: bytes) -> int:
    """How zlib is to read it: some servers say deflate and send it without its header."""
    gzipped = beginning[:2] == b"\x1f\x8b"
    with_header = beginning[0] & 0x0F == 8 and int.from_bytes(beginning[:2]) % 31 == 0
    return _EITHER_HEADER if gzipped or with_header else -zlib.MAX_WBITS
