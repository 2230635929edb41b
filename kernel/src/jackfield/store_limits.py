"""The limits of persistent stores for keys, values and times, and the end of a key prefix's range.

A store has to check only what it writes: a key that cannot be written does not exist, so it cannot be read.
"""

from __future__ import annotations

MAX_KEY_BYTES = 1024
MAX_VALUE_BYTES = 16 * 1024 * 1024
_INT64 = range(-(2**63), 2**63)
_LAST = "\U0010ffff"


def check(key: str, value: bytes = b"", ttl: float | None = None) -> bytes:
    """Check the key or stream, the value and the time to live of an operation; return the value as bytes.

    A mutable buffer is copied. A time to live of None means no expiry.
    """
    # Every write calls this, so the usual case takes as few steps as possible.
    if type(key) is not str or len(key) * 4 > MAX_KEY_BYTES or not key.isascii():
        _measure(key)
    if type(value) is not bytes:
        value = as_bytes(value)
    if len(value) > MAX_VALUE_BYTES:
        raise ValueError(f"a value of {len(value)} bytes is too large; the limit is {MAX_VALUE_BYTES}")
    if ttl is not None and not ttl >= 0:
        raise ValueError(f"a time to live must be a number of seconds, at least 0, not {ttl!r}")
    return value


def _measure(text: str) -> None:
    if not isinstance(text, str):
        raise TypeError(f"a key must be a str, not {type(text).__name__}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"the key {text!r:.80} contains an unpaired surrogate") from None
    if size > MAX_KEY_BYTES:
        raise ValueError(f"the key {text!r:.80} has {size} bytes; the limit is {MAX_KEY_BYTES}")


def as_bytes(value: bytes | bytearray | memoryview) -> bytes:
    """Return a value as bytes: a copy of a mutable buffer, which may change before it is written."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"a value must be bytes, not {type(value).__name__}")
    return bytes(value)


def check_amount(number: int) -> int:
    """Check a counter increment and return it."""
    if number not in _INT64:
        raise ValueError(f"{number} does not fit into 64 bits")
    return number


def prefix_end(prefix: str) -> str:
    """Return the smallest text above all texts with a prefix: the end of an index range."""
    stem = prefix.rstrip(_LAST)
    if not stem:
        return _LAST * MAX_KEY_BYTES  # Longer than any key.
    # UTF-8 sorts by code point; the code points skipped here are surrogates.
    following = 0xE000 if stem[-1] == "\ud7ff" else ord(stem[-1]) + 1
    return stem[:-1] + chr(following)
