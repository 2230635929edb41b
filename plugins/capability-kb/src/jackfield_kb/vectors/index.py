"""The vector index on disk: which folder is in use, and how far it has followed the truth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jackfield_kb.access import scopes_of
from jackfield_kb.errors import DamagedIndexError
from jackfield_kb.generations import Generations, incomplete
from jackfield_kb.passages import key_of
from jackfield_kb.truth.reading import Numbered, Position
from jackfield_kb.truth.rows import in_microseconds
from jackfield_kb.vectors import columns, signs
from jackfield_kb.vectors.columns import Columns, Extent, Extents

NEVER = np.iinfo(np.int64).min
"""When a record without a date was updated."""


class VectorState(NamedTuple):
    """What `current.json` says."""

    folder: str
    model: str
    dimensions: int
    rows: int
    position: Position
    extents: Extents


class VectorIndex(Generations):
    """The folder `vectors` of a library."""

    def state(self) -> VectorState | None:
        """How far the index has come; None when there is none, `DamagedIndexError` when it is unreadable."""
        said = self._said()
        if said is None:
            return None
        try:
            said["position"] = Position(*said["position"])
            said["extents"] = {name: Extent(*extent) for name, extent in said["extents"].items()}
            return VectorState(**said)
        except (KeyError, TypeError, AttributeError) as error:
            raise incomplete(error) from None

    def columns(self, state: VectorState) -> Columns:
        """The files of a state."""
        return Columns(self.folder / state.folder)

    def start_anew(self, model: str) -> VectorState:
        """A folder for a rebuild; it is not in use before something is recorded."""
        return VectorState(self._new_generation(), model, 0, 0, Position(), {})

    def record(self, state: VectorState) -> None:
        """Make a state the one that is in use."""
        self._say(state._asdict())

    def tidy(self, state: VectorState) -> None:
        """Remove the folders that are no longer in use."""
        self._keep_only(state.folder)


class Names:
    """Scopes, types and tags as numbers, in the order in which they were first met."""

    def __init__(self, known: bytes) -> None:
        try:
            self._codes = {name: code for code, name in enumerate(json.loads(b"[" + known[:-1] + b"]"))}
        except ValueError as error:
            raise DamagedIndexError(f"the names cannot be read ({error})") from None
        self.added = b""

    def code(self, name: str) -> int:
        """The number of a name, a new one if need be."""
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(self._codes)
            self.added += json.dumps(name).encode() + b","
        return code

    def find(self, name: str) -> int | None:
        """The number of a name; None when no row has it."""
        return self._codes.get(name)

    def starting_with(self, prefix: str) -> list[int]:
        """The numbers of all names that start so."""
        return [code for name, code in self._codes.items() if name.startswith(prefix)]


class Rows(NamedTuple):
    """Passages to be added, in the order of their numbers."""

    items: Sequence[Numbered]
    counts: Sequence[int]
    """How many passages each record has."""

    vectors: NDArray[np.float32]


def added(files: Columns, state: VectorState, rows: Rows) -> VectorState:
    """A state with more rows; it is valid once it has been recorded."""
    names = Names(files.read(state.extents, columns.NAMES).tobytes())
    additions = _facets(rows, names, state.rows)
    additions[columns.NAMES] = np.frombuffer(names.added, np.uint8)
    additions[columns.VECTORS] = rows.vectors
    extents = files.append(state.extents, additions)
    grown = state._replace(
        dimensions=rows.vectors.shape[1], rows=state.rows + len(rows.vectors), extents=extents
    )
    return with_signs(files, grown)


def _facets(rows: Rows, names: Names, first: int) -> dict[str, NDArray[Any]]:
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
        columns.KEYS: np.array(keys, np.uint64),
        columns.SCOPES: np.array(scopes, np.uint32),
        columns.TYPES: np.array(types, np.uint32),
        columns.UPDATED: np.array(updated, np.int64),
        columns.TAGS: np.array(tags, np.uint32).reshape(-1),
    }


def with_signs(files: Columns, state: VectorState) -> VectorState:
    """Add the signs of the blocks that have become full; the first full one fixes the centre."""
    extents = state.extents
    width = signs.words(state.dimensions) * signs.BLOCK
    done = extents.get(columns.SIGNS, Extent()).size // (width * 8)
    vectors = files.read(extents, columns.VECTORS).reshape(-1, state.dimensions)
    for block in range(done, state.rows // signs.BLOCK):
        chunk = vectors[block * signs.BLOCK : (block + 1) * signs.BLOCK].astype(np.float32)
        if not extents.get(columns.CENTRE):
            extents = files.append(extents, {columns.CENTRE: chunk.mean(axis=0)})
        centre = files.read(extents, columns.CENTRE)
        extents = files.append(extents, {columns.SIGNS: signs.of_block(chunk, centre)})
    return state._replace(extents=extents)
