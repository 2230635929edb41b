"""The vector index on disk: columns of fixed-width values that only grow at their end.

A row is a chunk of a record. Written values never change, so readers in other processes can map the files
into memory while one process appends, and the checksum of the valid part continues from one append to the
next. Data that a crash left after the valid part is cut off before the next append. Compaction copies the
rows of existing records into new files.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jackfield_kb.access import scopes_of
from jackfield_kb.chunks import key_of
from jackfield_kb.errors import DamagedIndexError
from jackfield_kb.index_worker import Generations, incomplete
from jackfield_kb.records.interface import Numbered, Position
from jackfield_kb.records.rows import in_microseconds
from jackfield_kb.vectors import binary_quantization as quantization

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
    """The valid size of a file, and its checksum."""

    size: int = 0
    crc: int = 0


Extents = dict[str, Extent]


class Columns:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, extents: Extents, additions: Mapping[str, NDArray[Any]]) -> Extents:
        """Append to some columns; the result is valid once it is recorded."""
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
        """Return a column as a memory map."""
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
        """Return the device and inode, which distinguish these files from later ones of the same name."""
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


NEVER = np.iinfo(np.int64).min
"""The stored time of a record without a date."""


class VectorIndexState(NamedTuple):
    """The content of `current.json`."""

    folder: str
    model: str
    dimensions: int
    rows: int
    position: Position
    extents: Extents
    complete: bool = True
    """False until the index has covered all records for the first time."""


class VectorIndex(Generations):
    """The folder `vectors` of a library."""

    format = 1

    def state(self) -> VectorIndexState | None:
        """Read the index's state; None without an index; raises `DamagedIndexError` if it is unreadable."""
        said = self._said()
        if said is None:
            return None
        try:
            said["position"] = Position(*said["position"])
            said["extents"] = {name: Extent(*extent) for name, extent in said["extents"].items()}
            return VectorIndexState(**said)
        except (KeyError, TypeError, AttributeError) as error:
            raise incomplete(error) from None

    def columns(self, state: VectorIndexState) -> Columns:
        """Return the files of a state."""
        return Columns(self.folder / state.folder)

    def start_rebuild(self, model: str) -> VectorIndexState:
        """Create a folder for a rebuild; readers use it once its state is recorded."""
        return VectorIndexState(self._new_generation(), model, 0, 0, Position(), {}, complete=False)

    def record(self, state: VectorIndexState) -> None:
        """Publish a state."""
        self._say(state._asdict())

    def tidy(self, state: VectorIndexState) -> None:
        """Remove folders that are no longer used."""
        self._keep_only(state.folder)


class FacetNames:
    """Numbers for scopes, types and tags, in order of first occurrence."""

    def __init__(self, known: bytes) -> None:
        try:
            self._codes = {name: code for code, name in enumerate(json.loads(b"[" + known[:-1] + b"]"))}
        except ValueError as error:
            raise DamagedIndexError(f"the names cannot be read ({error})") from None
        self.added = b""

    def code(self, name: str) -> int:
        """Return the number of a name; a new name gets the next number."""
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(self._codes)
            self.added += json.dumps(name).encode() + b","
        return code

    def find(self, name: str) -> int | None:
        """Return the number of a name; None if no row has it."""
        return self._codes.get(name)

    def starting_with(self, prefix: str) -> list[int]:
        """Return the numbers of all names with a prefix."""
        return [code for name, code in self._codes.items() if name.startswith(prefix)]


class Rows(NamedTuple):
    """Chunks to add, sorted by record number."""

    items: Sequence[Numbered]
    counts: Sequence[int]
    """The number of chunks of each record."""

    vectors: NDArray[np.float32]


def added(files: Columns, state: VectorIndexState, rows: Rows) -> VectorIndexState:
    """Append rows; the returned state is valid once it is recorded."""
    names = FacetNames(files.read(state.extents, NAMES).tobytes())
    additions = _facets(rows, names, state.rows)
    additions[NAMES] = np.frombuffer(names.added, np.uint8)
    additions[VECTORS] = rows.vectors
    extents = files.append(state.extents, additions)
    grown = state._replace(
        dimensions=rows.vectors.shape[1], rows=state.rows + len(rows.vectors), extents=extents
    )
    return with_signs(files, grown)


def _facets(rows: Rows, names: FacetNames, first: int) -> dict[str, NDArray[Any]]:
    keys: list[int] = []
    tags: list[tuple[int, int]] = []
    scopes, types, updated = [], [], []
    for item, count in zip(rows.items, rows.counts, strict=True):
        record = item.record
        scope, kind = names.code(f"scope:{scopes_of(record)[-1]}"), names.code(f"type:{record.type}")
        moment = NEVER if record.last_updated is None else in_microseconds(record.last_updated)
        codes = [names.code(f"tag:{tag}") for tag in record.tags]
        for ordinal in range(count):
            tags += [(code, first + len(keys)) for code in codes]
            keys.append(key_of(item.number, ordinal))
        scopes += [scope] * count
        types += [kind] * count
        updated += [moment] * count
    return {
        KEYS: np.array(keys, np.uint64),
        SCOPES: np.array(scopes, np.uint32),
        TYPES: np.array(types, np.uint32),
        UPDATED: np.array(updated, np.int64),
        TAGS: np.array(tags, np.uint32).reshape(-1),
    }


def with_signs(files: Columns, state: VectorIndexState) -> VectorIndexState:
    """Add the binary codes of blocks that are now complete; the first one fixes the centre."""
    extents = state.extents
    width = quantization.words(state.dimensions) * quantization.BLOCK
    done = extents.get(SIGNS, Extent()).size // (width * 8)
    vectors = files.read(extents, VECTORS).reshape(-1, state.dimensions)
    for block in range(done, state.rows // quantization.BLOCK):
        chunk = vectors[block * quantization.BLOCK : (block + 1) * quantization.BLOCK].astype(np.float32)
        if not extents.get(CENTRE):
            extents = files.append(extents, {CENTRE: chunk.mean(axis=0)})
        centre = files.read(extents, CENTRE)
        extents = files.append(extents, {SIGNS: quantization.of_block(chunk, centre)})
    return state._replace(extents=extents)


_WORTH_IT = 0.3
_ORDINAL = np.uint64(16)
_ROWS_AT_ONCE = 16 * quantization.BLOCK


def too_many_dead(files: Columns, state: VectorIndexState) -> bool:
    """Return whether so many rows are removed that compaction pays off."""
    removed = files.read(state.extents, REMOVED)
    if len(removed) < quantization.BLOCK // 4:
        return False
    dead = np.isin(files.read(state.extents, KEYS) >> _ORDINAL, removed)
    return bool(dead.mean() > _WORTH_IT)


def compacted(index: VectorIndex, state: VectorIndexState) -> VectorIndexState:
    """Copy the rows of existing records to a new folder."""
    old = index.columns(state)
    removed = old.read(state.extents, REMOVED)
    alive = ~np.isin(old.read(state.extents, KEYS) >> _ORDINAL, removed)
    fresh = index.start_rebuild(state.model)
    files = index.columns(fresh)
    extents: dict[str, Extent] = {}
    for name in (KEYS, SCOPES, TYPES, UPDATED):
        extents = files.append(extents, {name: old.read(state.extents, name)[alive]})
    extents = files.append(extents, {NAMES: old.read(state.extents, NAMES)})
    tags = old.read(state.extents, TAGS).reshape(-1, 2)
    kept = tags[alive[tags[:, 1]]]
    moved = np.cumsum(alive) - 1
    extents = files.append(extents, {TAGS: np.stack([kept[:, 0], moved[kept[:, 1]]], axis=1).reshape(-1)})
    vectors = old.read(state.extents, VECTORS).reshape(-1, state.dimensions)
    for start in range(0, state.rows, _ROWS_AT_ONCE):
        chunk = vectors[start : start + _ROWS_AT_ONCE][alive[start : start + _ROWS_AT_ONCE]]
        extents = files.append(extents, {VECTORS: chunk})
    rows = int(alive.sum())
    return with_signs(files, state._replace(folder=fresh.folder, rows=rows, extents=extents))
