"""The files of the vector index: columns that only ever grow at their end.

A row is a passage. Nothing that was written is changed, so readers of other processes can map the files
into memory while one process adds to them, and a checksum of what is valid can be carried on from one
addition to the next. What a crash left behind the valid part is cut off before more is added.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jackfield_kb.errors import DamagedIndexError

VECTORS, SIGNS, KEYS, SCOPES, TYPES, UPDATED, TAGS, NAMES, REMOVED, CENTRE = (
    "vectors", "signs", "keys", "scopes", "types", "updated", "tags", "names", "removed", "centre",
)  # fmt: skip

DTYPES: Mapping[str, type[np.generic]] = {
    VECTORS: np.float16,
    SIGNS: np.uint64,
    KEYS: np.uint64,
    SCOPES: np.uint32,
    TYPES: np.uint32,
    UPDATED: np.int64,
    TAGS: np.uint32,
    NAMES: np.uint8,
    REMOVED: np.uint64,
    CENTRE: np.float32,
}
_CHUNK = 1 << 22


class Extent(NamedTuple):
    """How much of a file is valid, and its checksum."""

    size: int = 0
    crc: int = 0


Extents = dict[str, Extent]


class Columns:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, extents: Extents, additions: Mapping[str, NDArray[Any]]) -> Extents:
        """Add to some columns; the result is valid once it has been recorded."""
        self.folder.mkdir(0o700, parents=True, exist_ok=True)
        grown = dict(extents)
        for name, values in additions.items():
            data = np.ascontiguousarray(values, DTYPES[name]).tobytes()
            if data:
                grown[name] = self._append(name, extents.get(name, Extent()), data)
        return grown

    def _append(self, name: str, extent: Extent, data: bytes) -> Extent:
        with (self.folder / name).open("ab") as file:
            file.truncate(extent.size)
            file.seek(extent.size)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return Extent(extent.size + len(data), zlib.crc32(data, extent.crc))

    def read(self, extents: Extents, name: str) -> NDArray[Any]:
        """A column as it lies in the file, mapped rather than read."""
        extent = extents.get(name, Extent())
        if not extent.size:
            return np.empty(0, DTYPES[name])
        try:
            with (self.folder / name).open("rb") as file:
                data = mmap.mmap(file.fileno(), extent.size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise DamagedIndexError(f"the file {name} is missing or too short ({error})") from None
        return np.frombuffer(data, DTYPES[name])

    def identity(self) -> tuple[int, int]:
        """What tells these files from others under the same name, as long as somebody reads them."""
        try:
            found = (self.folder / KEYS).stat()
        except OSError as error:
            raise DamagedIndexError(f"the file {KEYS} is missing ({error})") from None
        return found.st_dev, found.st_ino

    def check(self, extents: Extents) -> None:
        """Compare every file with its checksum."""
        for name, extent in extents.items():
            if name not in DTYPES:
                raise DamagedIndexError(f"there is no column {name}")
            crc, column = 0, self.read(extents, name).view(np.uint8)
            for start in range(0, len(column), _CHUNK):
                crc = zlib.crc32(column[start : start + _CHUNK].data, crc)
            if crc != extent.crc:
                raise DamagedIndexError(f"the file {name} does not match its checksum")
