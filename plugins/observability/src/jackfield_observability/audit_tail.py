"""The latest lines of an audit, newest first, read from the end of its files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

BLOCK = 64 * 1024
"""How much is read at a time, from the end towards the beginning."""

MOST_BYTES = 16 * 1024 * 1024
"""How far back is looked; a filter that fits nothing must not read for minutes."""

Record = dict[str, Any]


class Tail(NamedTuple):
    """Lines that were asked for, newest first."""

    lines: list[Record]
    complete: bool
    """Whether there are no older ones that fit."""


def read_tail(path: Path, backups: int, limit: int, fits: Callable[[Record], bool]) -> Tail:
    """The latest lines that fit, of a file and of those it was rotated into."""
    found: list[Record] = []
    left = MOST_BYTES
    for file in (path, *(path.with_name(f"{path.name}.{number}") for number in range(1, backups + 1))):
        for line in _backwards(file):
            left -= len(line)
            if left < 0:
                return Tail(found, complete=False)
            record = _read(line)
            if record is None or not fits(record):
                continue
            if len(found) == limit:
                return Tail(found, complete=False)
            found.append(record)
    return Tail(found, complete=True)


def _read(line: bytes) -> Record | None:
    """A line as it was written; nothing for half a line that a killed process left."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


def _backwards(path: Path) -> Iterator[bytes]:
    """The lines of a file from the last to the first; none of what is no file, such as a pipe."""
    try:
        # A pipe without a writer would hold up whoever opens it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return
        end = size = os.fstat(descriptor).st_size
        begun = b""
        # The second condition ends it in a file that has no lines, which is none of ours.
        while end > 0 and size - end <= MOST_BYTES:
            start = max(0, end - BLOCK)
            file.seek(start)
            first, *lines = (file.read(end - start) + begun).split(b"\n")
            yield from (line for line in reversed(lines) if line)
            # What stands before the first newline goes on in the block before.
            begun, end = first, start
        if begun:
            yield begun
