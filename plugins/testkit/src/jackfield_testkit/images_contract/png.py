"""Real pictures, made without a library: a plain colour in a PNG file."""

from __future__ import annotations

import struct
import zlib

SIZES = {"square": (64, 64), "landscape": (96, 64), "portrait": (64, 96)}


def png(width: int, height: int, colour: tuple[int, int, int] = (20, 90, 160)) -> bytes:
    """A picture of one colour."""
    row = b"\x00" + bytes(colour) * width
    parts = (
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress(row * height)),
        _chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
