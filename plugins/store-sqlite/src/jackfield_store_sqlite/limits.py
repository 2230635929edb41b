"""Limits on keys, values, counters and times."""

from __future__ import annotations

import math

MAX_KEY_BYTES = 1024
MAX_VALUE_BYTES = 16 * 1024 * 1024
_INT64 = range(-(2**63), 2**63)


def key(text: str) -> str:
    """Check a key or stream name and return it unchanged."""
    if not isinstance(text, str):
        raise TypeError(f"a key is a str, not {type(text).__name__}")
    if len(text) * 4 > MAX_KEY_BYTES or not text.isascii():
        _measure(text)
    return text


def _measure(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"the key {text!r:.80} holds half of a surrogate pair") from None
    if size > MAX_KEY_BYTES:
        raise ValueError(f"the key {text!r:.80} has {size} bytes; a store takes up to {MAX_KEY_BYTES}")


def value(data: bytes) -> bytes:
    """Check a value and return it as bytes; a mutable buffer is copied."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a value is bytes, not {type(data).__name__}")
    if len(data) > MAX_VALUE_BYTES:
        raise ValueError(f"a value of {len(data)} bytes is too big; a store takes up to {MAX_VALUE_BYTES}")
    return bytes(data)


def seconds(ttl: float) -> float:
    """Check a time to live and return it."""
    if math.isnan(ttl) or ttl < 0:
        raise ValueError(f"a time to live is a number of seconds from 0 on, not {ttl!r}")
    return ttl


def patience(name: str, length: float) -> float:
    """Check a positive, finite number of seconds and return it."""
    if not 0 < length < math.inf:
        raise ValueError(f"{name} of the sqlite store is a number of seconds above 0, not {length!r}")
    return length


def amount(number: int) -> int:
    """Check a counter increment and return it."""
    if number not in _INT64:
        raise ValueError(f"{number} does not fit into 64 bits")
    return number
