"""Decompresses response bodies up to a size limit.

A few kilobytes can expand to gigabytes, so decompression stops at the limit.
"""

from __future__ import annotations

import zlib

ACCEPTED = "gzip, deflate"
"""The value of the Accept-Encoding header."""

_PLAIN = ("", "identity")
_COMPRESSED = ("gzip", "x-gzip", "deflate")
# Compressed bytes that are accepted, as a multiple of the limit: compression makes some data a little longer,
# and a stream that decompresses to almost nothing is cut off.
_MOST_RECEIVED = 2
_EITHER_HEADER = zlib.MAX_WBITS | 32


class UnknownEncodingError(Exception):
    """The body has a content encoding that was not requested."""


class CorruptBodyError(Exception):
    """The body cannot be decompressed."""


class ResponseBody:
    """Collects a body chunk by chunk."""

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
        """The decompressed body so far."""
        return bytes(self._taken)

    def add(self, chunk: bytes) -> bool:
        """Add a chunk up to the limit; return False once the limit is reached."""
        self._received += len(chunk)
        room = self._limit - len(self._taken)
        # One byte over the limit distinguishes a longer body from one that just fits.
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
        # Several gzip members may follow each other.
        while self._inflating.eof and (rest := self._inflating.unused_data) and len(inflated) < room:
            self._inflating = zlib.decompressobj(_EITHER_HEADER)
            try:
                inflated += self._inflating.decompress(rest, room - len(inflated))
            except zlib.error:
                raise CorruptBodyError from None
        return inflated


def _window(beginning: bytes) -> int:
    """Return the window argument for zlib; some servers send deflate without its header."""
    gzipped = beginning[:2] == b"\x1f\x8b"
    with_header = beginning[0] & 0x0F == 8 and int.from_bytes(beginning[:2]) % 31 == 0
    return _EITHER_HEADER if gzipped or with_header else -zlib.MAX_WBITS
