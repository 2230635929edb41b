"""Splits a stream into WebSocket frames (RFC 6455, section 5.2), without checking or interpreting them.

In a voice session, few frames need a parser: audio comes in complete messages, fifty times a second.
"""

from __future__ import annotations

from collections.abc import Iterator

TEXT = 0x81
"""The first byte of a text message in one frame, without extensions."""

BINARY = 0x82
"""The first byte of a binary message in one frame, without extensions."""

_FINAL = 0x80
_MASKED = 0x80
_MASK_BYTES = 4
_FIRST_CONTROL_OPCODE = 8


class FrameSplitter:
    """Splits the data from one side of a connection into frames.

    A frame is invalid if it is longer than `max_size` bytes, or if its masking is wrong for this side. From
    an invalid frame on, the stream is passed on unsplit, so that the next parser finds and reports the fault.
    """

    def __init__(self, max_size: int, *, masked: bool) -> None:
        """The frames of a client are `masked`, those of a server are not."""
        self._max_size = max_size
        self._mask = _MASKED if masked else 0
        self._rest = bytearray()
        self._needed = 0
        """The number of bytes that the rest must have before it can be split."""
        self._broken = False
        self._fragmented = False

    def split(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the frames that are complete with this piece of the stream.

        A complete text or binary message comes with its first byte, `TEXT` or `BINARY`, and any other frame
        with 0.
        """
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        place, end = 0, len(data)
        while place < end:
            size = end - place if self._broken else self._size(data, place)
            if place + size > end:
                self._rest += data[place:]
                self._needed = size
                return
            first = data[place]
            message = first if first in (TEXT, BINARY) and not self._fragmented and not self._broken else 0
            if not message and first & 0x0F < _FIRST_CONTROL_OPCODE:
                self._fragmented = not first & _FINAL
            yield message, data if size == end else data[place : place + size]
            place += size

    def _size(self, data: bytes, place: int) -> int:
        """Return the size of the frame at `place`, or the number of bytes needed to determine it."""
        left = len(data) - place
        if left < 2:
            return 2
        second = data[place + 1]
        extra = _LENGTH_BYTES.get(second & 0x7F, 0)
        if left < 2 + extra:
            return 2 + extra
        length = int.from_bytes(data[place + 2 : place + 2 + extra]) if extra else second & 0x7F
        if second & _MASKED != self._mask or length > self._max_size:
            self._broken = True
            return left
        return 2 + extra + (_MASK_BYTES if self._mask else 0) + length


_LENGTH_BYTES = {126: 2, 127: 8}
"""How many bytes contain the length of the payload, by the length field in the second byte of a frame."""


def payload_start(frame: bytes) -> int:
    """Return where the payload of a frame begins; in a masked frame, the four-byte key precedes it."""
    second = frame[1]
    return 2 + _LENGTH_BYTES.get(second & 0x7F, 0) + (_MASK_BYTES if second & _MASKED else 0)


def frame_head(first: int, length: int, *, masked: bool = False) -> bytes:
    """Return the header of a frame with a payload of this length; in a masked frame, the key follows it."""
    mask = _MASKED if masked else 0
    if length < 126:
        return bytes((first, mask | length))
    if length < 1 << 16:
        return bytes((first, mask | 126, length >> 8, length & 0xFF))
    return bytes((first, mask | 127)) + length.to_bytes(8)
