"""Index files: atomic JSON writes, checksums and locks."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jackfield.atomic_files import acquire_lock, write_atomically

from jackfield_kb.errors import DamagedIndexError

_CHUNK = 1 << 22


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file in one step."""
    write_atomically(path, json.dumps(value).encode())


def read_json(path: Path) -> Any:
    """Read a JSON file; raises `FileNotFoundError`, or `DamagedIndexError` if it is not JSON."""
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise DamagedIndexError(f"{path.name} is damaged ({error})") from None


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a lock across processes and threads; yields False if it is taken and `wait` is False."""
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    with path.open("ab") as file:
        yield acquire_lock(file.fileno(), None if wait else 0)


def size(folder: Path) -> int:
    """Return the total size of the files in a folder."""
    total = 0
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                total += path.stat().st_size
        except FileNotFoundError:
            continue  # Another process has removed an old index file.
    return total
