"""Reading the vector index: the passages whose meaning is nearest to a query's."""

from __future__ import annotations

import threading
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from jackfield.capabilities.knowledge import Filters
from numpy.typing import NDArray

from jackfield_kb.access import PERSONAL
from jackfield_kb.errors import DamagedIndexError
from jackfield_kb.truth.rows import in_microseconds
from jackfield_kb.vectors import columns, signs
from jackfield_kb.vectors.index import NEVER, Names, VectorIndex, VectorState

_EXACT = 500
"""How many rows get an exact look after the quick one; that finds more than 99 of 100 of the ten nearest."""

_FEW = 500
"""So few rows are looked at exactly without a quick look."""

_SPARSE = 12
"""When fewer than one row in so many is asked for, picking those out is quicker than reading all."""

_SAMPLE = 256
_ORDINAL = np.uint64(16)

Mask = NDArray[np.bool_] | None
Vector = NDArray[np.float32]


class Near(NamedTuple):
    """Rows and the cosine of each, best first."""

    rows: NDArray[np.intp]
    cosines: NDArray[np.float32]


class VectorReader:
    """What this process has open of the index."""

    def __init__(self, index: VectorIndex, model: str) -> None:
        self._index = index
        self._model = model
        self._lock = threading.Lock()
        self._mark: tuple[int, int] | None = None
        self._view: VectorView | None = None
        self._checked = ""

    def view(self) -> VectorView | None:
        """The index as it stands now; None when there is none, or one of another model."""
        while (mark := self._index.mark()) is not None:
            try:
                with self._lock:
                    if mark != self._mark:
                        self._view = self._follow()
                        self._mark = mark
                    return self._view
            except DamagedIndexError:
                # It may only have been replaced while we looked.
                if mark == self._index.mark():
                    raise
        return None

    def forget(self) -> None:
        """Let go of what is open."""
        with self._lock:
            self._view, self._mark, self._checked = None, None, ""

    def discard(self) -> None:
        """Forget an index that cannot be used; the next refresh makes it anew."""
        self.forget()
        self._index.discard()

    def _follow(self) -> VectorView | None:
        state = self._index.state()
        if state is None or state.model != self._model or not state.rows:
            return None
        if self._checked != state.folder:
            self._index.columns(state).check(state.extents)
            self._checked = state.folder
        return VectorView(self._index, state)


class VectorView:
    """One state of the index; nothing that is added later shows in it."""

    def __init__(self, index: VectorIndex, state: VectorState) -> None:
        files = index.columns(state)
        self.rows = state.rows
        self.position = state.position
        self._vectors = files.read(state.extents, columns.VECTORS).reshape(-1, state.dimensions)
        self._keys = files.read(state.extents, columns.KEYS)
        self._scopes = files.read(state.extents, columns.SCOPES)
        self._types = files.read(state.extents, columns.TYPES)
        self._updated = files.read(state.extents, columns.UPDATED)
        self._tags = files.read(state.extents, columns.TAGS).reshape(-1, 2)
        self._names = Names(files.read(state.extents, columns.NAMES).tobytes())
        self._centre = files.read(state.extents, columns.CENTRE)
        width = signs.words(state.dimensions)
        self._signs = files.read(state.extents, columns.SIGNS).reshape(-1, width, signs.BLOCK)
        self._bits = width * 64
        self._alive = self._living(files.read(state.extents, columns.REMOVED))
        self.mask = lru_cache(16)(self._mask)
        self._in_scopes = lru_cache(16)(self._scoped)

    @cached_property
    def _tail(self) -> Vector:
        """The rows of the block that is not full yet."""
        tail: Vector = self._vectors[len(self._signs) * signs.BLOCK :].astype(np.float32)
        return tail

    @cached_property
    def sample(self) -> Vector:
        """Some rows, spread over all: what a query is compared with to see what is unusual."""
        picked = np.linspace(0, self.rows - 1, min(_SAMPLE, self.rows)).astype(np.intp)
        found: Vector = self._vectors[picked].astype(np.float32)
        return found

    @cached_property
    def _tag_rows(self) -> dict[int, NDArray[np.uint32]]:
        order = np.argsort(self._tags[:, 0], kind="stable")
        codes, starts = np.unique(self._tags[order, 0], return_index=True)
        parts = np.split(self._tags[order, 1], starts[1:])
        return dict(zip(codes.tolist(), parts, strict=True))

    def _living(self, removed: NDArray[np.uint64]) -> Mask:
        if not len(removed):
            return None
        numbers = self._keys >> _ORDINAL
        return ~np.isin(numbers, removed)

    def _mask(self, scopes: frozenset[str] | None, filters: Filters | None) -> Mask:
        """Which rows may be found; None is all of them."""
        parts = [] if self._alive is None else [self._alive]
        if scopes is not None:
            parts.append(self._in_scopes(scopes))
        if filters is not None:
            if filters.type is not None:
                code = self._names.find(f"type:{filters.type}")
                parts.append(self._types == (self.rows if code is None else code))
            parts += [self._tagged(tag) for tag in filters.tags]
            parts += self._dated(filters)
        if not parts:
            return None
        mask = parts[0].copy()
        for part in parts[1:]:
            mask &= part
        return mask

    def _scoped(self, scopes: frozenset[str]) -> NDArray[np.bool_]:
        codes = [self._names.find(f"scope:{scope}") for scope in scopes]
        if PERSONAL in scopes:
            codes += self._names.starting_with(f"scope:{PERSONAL}/")
        return np.isin(self._scopes, [code for code in codes if code is not None])

    def _tagged(self, tag: str) -> NDArray[np.bool_]:
        found = np.zeros(self.rows, np.bool_)
        code = self._names.find(f"tag:{tag}")
        if code is not None:
            found[self._tag_rows[code]] = True
        return found

    def _dated(self, filters: Filters) -> list[NDArray[np.bool_]]:
        parts = []
        if filters.updated_from is not None:
            parts.append(self._updated >= in_microseconds(filters.updated_from))
        if filters.updated_until is not None:
            parts.append(self._updated <= in_microseconds(filters.updated_until))
        return [*parts, self._updated != NEVER] if parts else []

    def search(self, query: Vector, mask: Mask, most: int) -> Near:
        """The nearest rows among those of the mask."""
        full = len(self._signs) * signs.BLOCK
        rows = self._shortlist(query, mask, full)
        cosines = self.cosines(query, rows)
        if full < self.rows:
            tail = signs.cosines(self._tail, query)
            picked = np.arange(len(tail)) if mask is None else np.flatnonzero(mask[full:])
            rows = np.concatenate([rows, picked + full])
            cosines = np.concatenate([cosines, tail[picked]])
        if len(rows) > most:
            best = np.argpartition(-cosines, most)[:most]
            rows, cosines = rows[best], cosines[best]
        order = np.argsort(-cosines, kind="stable")
        return Near(rows[order], cosines[order])

    def _shortlist(self, query: Vector, mask: Mask, full: int) -> NDArray[np.intp]:
        if not full:
            return np.empty(0, np.intp)
        asked = signs.of_rows(query[None], self._centre)[0]
        if mask is None:
            return signs.nearest(signs.distances(self._signs, asked), _EXACT, self._bits)
        count = np.count_nonzero(mask[:full])
        if count * _SPARSE < full or count <= _FEW:
            rows = np.flatnonzero(mask[:full])
            if count <= _FEW:
                return rows
            return rows[signs.nearest(signs.distances_of(self._signs, rows, asked), _EXACT, self._bits)]
        distance = signs.distances(self._signs, asked)
        distance[~mask[:full]] = self._bits + 1
        return signs.nearest(distance, _EXACT, self._bits)

    def cosines(self, query: Vector, rows: NDArray[np.intp]) -> Vector:
        """The exact cosine of given rows."""
        return signs.cosines(self.vectors(rows), query)

    def vectors(self, rows: NDArray[np.intp]) -> Vector:
        """Some rows."""
        found: Vector = self._vectors[rows].astype(np.float32)
        return found

    def keys(self, rows: NDArray[np.intp]) -> list[int]:
        """The passages of some rows."""
        found: list[int] = self._keys[rows].tolist()
        return found

    def rows_of(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The rows of passages, and whether there really is one."""
        places = np.minimum(np.searchsorted(self._keys, keys), self.rows - 1)
        return places, self._keys[places] == keys
