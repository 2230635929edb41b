"""Writing the index anew without the rows of records that are gone."""

from __future__ import annotations

import numpy as np

from jackfield_kb.vectors import columns, signs
from jackfield_kb.vectors.columns import Columns, Extent
from jackfield_kb.vectors.index import VectorIndex, VectorState, with_signs

_WORTH_IT = 0.3
_ORDINAL = np.uint64(16)
_CHUNK = 16 * signs.BLOCK


def too_many_dead(files: Columns, state: VectorState) -> bool:
    """Whether so many rows are gone that searching pays for them."""
    removed = files.read(state.extents, columns.REMOVED)
    if len(removed) < signs.BLOCK // 4:
        return False
    dead = np.isin(files.read(state.extents, columns.KEYS) >> _ORDINAL, removed)
    return bool(dead.mean() > _WORTH_IT)


def compacted(index: VectorIndex, state: VectorState) -> VectorState:
    """The same state in a new folder with only the rows of records that are there."""
    old = index.columns(state)
    removed = old.read(state.extents, columns.REMOVED)
    alive = ~np.isin(old.read(state.extents, columns.KEYS) >> _ORDINAL, removed)
    fresh = index.start_anew(state.model)
    files = index.columns(fresh)
    extents: dict[str, Extent] = {}
    for name in (columns.KEYS, columns.SCOPES, columns.TYPES, columns.UPDATED):
        extents = files.append(extents, {name: old.read(state.extents, name)[alive]})
    extents = files.append(extents, {columns.NAMES: old.read(state.extents, columns.NAMES)})
    tags = old.read(state.extents, columns.TAGS).reshape(-1, 2)
    kept = tags[alive[tags[:, 1]]]
    moved = np.cumsum(alive) - 1
    extents = files.append(
        extents, {columns.TAGS: np.stack([kept[:, 0], moved[kept[:, 1]]], axis=1).reshape(-1)}
    )
    vectors = old.read(state.extents, columns.VECTORS).reshape(-1, state.dimensions)
    for start in range(0, state.rows, _CHUNK):
        chunk = vectors[start : start + _CHUNK][alive[start : start + _CHUNK]]
        extents = files.append(extents, {columns.VECTORS: chunk})
    rows = int(alive.sum())
    return with_signs(files, state._replace(folder=fresh.folder, rows=rows, extents=extents))
