"""Vector search: candidates by binary codes, then exact scores, within a selection of rows."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cached_property, partial, reduce
from typing import NamedTuple

import numpy as np
from jackfield_capability_types.knowledge import Filters
from numpy.typing import NDArray

from jackfield_kb.access import PERSONAL
from jackfield_kb.errors import DamagedIndexError
from jackfield_kb.records.rows import in_microseconds
from jackfield_kb.vectors import binary_quantization as quantization
from jackfield_kb.vectors import index
from jackfield_kb.vectors.index import NEVER, Columns, FacetNames, VectorIndex, VectorIndexState

_SPARSE = 5
"""If fewer than one row in this many is selected, picking rows is faster than scanning all."""

_MASKS = 32
_SELECTIONS = 48
_EVER = np.iinfo(np.int64).max
_ORDINAL = np.uint64(16)

Mask = NDArray[np.bool_]
RowNumbers = NDArray[np.intp]


class RowSelection(NamedTuple):
    """Selected rows: a sorted list if they are few, else a mask."""

    size: int
    total: int
    """The number of all rows."""

    few: RowNumbers
    mask: Mask | None

    @classmethod
    def of(cls, mask: Mask) -> RowSelection:
        """Build a selection from a mask."""
        size = int(np.count_nonzero(mask))
        if size * _SPARSE < len(mask):
            return cls(size, len(mask), np.flatnonzero(mask), None)
        return cls(size, len(mask), np.empty(0, np.intp), mask)

    def since(self, row: int) -> RowNumbers:
        """Return the selected rows from the given row on."""
        if self.mask is None:
            return self.few[np.searchsorted(self.few, row) :]
        return np.flatnonzero(self.mask[row:]) + row

    def holds(self, rows: RowNumbers) -> Mask:
        """Return a mask of the given rows that are selected."""
        if self.mask is not None:
            return self.mask[rows]
        if not self.size:
            return np.zeros(len(rows), np.bool_)
        found: Mask = self.few[np.minimum(np.searchsorted(self.few, rows), self.size - 1)] == rows
        return found

    def only(self, passing: Callable[[RowNumbers | slice], Mask]) -> RowSelection:
        """Narrow the selection by a test, which is applied to the selected rows only."""
        if self.mask is not None:
            return RowSelection.of(self.mask & passing(slice(None)))
        rows = self.few[passing(self.few)]
        return RowSelection(len(rows), self.total, rows, None)


class MaskCache:
    """Masks that are extended when the index grows; rows are only appended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._masks: OrderedDict[Hashable, Mask] = OrderedDict()

    def mask(self, name: Hashable, rows: int, beyond: Callable[[int], Mask]) -> Mask:
        """Return the mask of a facet for this many rows; `beyond` computes it from a given row on."""
        with self._lock:
            known = self._masks.get(name, np.empty(0, np.bool_))
        if len(known) < rows:
            known = np.concatenate([known, beyond(len(known))])
        with self._lock:
            self._masks[name] = known
            self._masks.move_to_end(name)
            if len(self._masks) > _MASKS:
                self._masks.popitem(last=False)
        return known[:rows]


class Facets:
    """Selects rows by scope, type, tag and date in one state of the index."""

    def __init__(self, files: Columns, state: VectorIndexState, grown: MaskCache) -> None:
        self._rows = state.rows
        self._grown = grown
        self._scopes = files.read(state.extents, index.SCOPES)
        self._types = files.read(state.extents, index.TYPES)
        self._updated = files.read(state.extents, index.UPDATED)
        self._tags = files.read(state.extents, index.TAGS).reshape(-1, 2)
        self._names = FacetNames(files.read(state.extents, index.NAMES).tobytes())
        removed = files.read(state.extents, index.REMOVED)
        self._alive = _alive(files.read(state.extents, index.KEYS), removed)
        self._lock = threading.Lock()
        self._selections: OrderedDict[Hashable, RowSelection | None] = OrderedDict()

    def select(self, scopes: frozenset[str] | None, filters: Filters | None) -> RowSelection | None:
        """Return the rows that pass the filters; None means all."""
        filters = filters or Filters()
        found = self._undated(scopes, filters.type, filters.tags)
        if filters.updated_from is None and filters.updated_until is None:
            return found
        return self._dated(found, filters)

    def _undated(
        self, scopes: frozenset[str] | None, type_: str | None, tags: tuple[str, ...]
    ) -> RowSelection | None:
        """Return the selection without dates, which differ between queries; it is cached."""
        key = scopes, type_, tags
        with self._lock:
            if key in self._selections:
                self._selections.move_to_end(key)
                return self._selections[key]
        found = self._base(scopes, type_, tags)
        with self._lock:
            self._selections[key] = found
            if len(self._selections) > _SELECTIONS:
                self._selections.popitem(last=False)
        return found

    def _base(
        self, scopes: frozenset[str] | None, type_: str | None, tags: tuple[str, ...]
    ) -> RowSelection | None:
        masks = [] if self._alive is None else [self._alive]
        if scopes is not None:
            masks.append(self._grown.mask(scopes, self._rows, partial(self._in_scopes, scopes)))
        if type_ is not None:
            masks.append(self._grown.mask(f"type:{type_}", self._rows, partial(self._of_type, type_)))
        masks += [self._grown.mask(f"tag:{tag}", self._rows, partial(self._tagged, tag)) for tag in tags]
        return RowSelection.of(reduce(np.logical_and, masks)) if masks else None

    def _in_scopes(self, scopes: frozenset[str], first: int) -> Mask:
        codes = [self._names.find(f"scope:{scope}") for scope in scopes]
        if PERSONAL in scopes:
            codes += self._names.starting_with(f"scope:{PERSONAL}/")
        return _coded(self._scopes[first:], codes)

    def _of_type(self, type_: str, first: int) -> Mask:
        return _coded(self._types[first:], [self._names.find(f"type:{type_}")])

    def _tagged(self, tag: str, first: int) -> Mask:
        found = np.zeros(self._rows - first, np.bool_)
        code = self._names.find(f"tag:{tag}")
        if code is not None:
            # Tags are sorted by row.
            beyond = self._tags[bisect_left(self._tags, first, key=lambda pair: int(pair[1])) :]
            found[beyond[beyond[:, 0] == code, 1] - first] = True
        return found

    def _dated(self, undated: RowSelection | None, filters: Filters) -> RowSelection:
        first, last = filters.updated_from, filters.updated_until
        earliest = NEVER + 1 if first is None else in_microseconds(first)
        latest = _EVER if last is None else in_microseconds(last)

        def passing(rows: RowNumbers | slice) -> Mask:
            moments = self._updated[rows]
            found: Mask = moments >= earliest
            found &= moments <= latest
            return found

        return RowSelection.of(passing(slice(None))) if undated is None else undated.only(passing)


def _coded(column: NDArray[np.uint32], codes: list[int | None]) -> Mask:
    known = [code for code in codes if code is not None]
    if len(known) == 1:
        found: Mask = column == known[0]
        return found
    return np.isin(column, known)


def _alive(keys: NDArray[np.uint64], removed: NDArray[np.uint64]) -> Mask | None:
    """Return a mask of the rows of existing records; None means all."""
    if not len(removed):
        return None
    starts = np.searchsorted(keys, removed << _ORDINAL)
    lengths = np.searchsorted(keys, (removed + np.uint64(1)) << _ORDINAL) - starts
    before = np.cumsum(lengths) - lengths
    alive = np.ones(len(keys), np.bool_)
    alive[np.repeat(starts - before, lengths) + np.arange(lengths.sum())] = False
    return alive


_EXACT = 500
"""The number of rows that are rescored exactly; recall of the ten nearest is above 99 %."""

_FEW = 500
"""Up to this many rows are scored exactly without binary codes."""

_SAMPLE = 256
_SIGN_AND_NUMBER = np.int32(0x0FFF_E000 - (1 << 31))
_EXPONENT = np.float32(2.0**112)

Vector = NDArray[np.float32]


class NearestRows(NamedTuple):
    """Rows and their cosines, best first."""

    rows: NDArray[np.intp]
    cosines: NDArray[np.float32]


class VectorReader:
    """Keeps the vector index open, and reloads it when it changes on disk."""

    def __init__(self, index: VectorIndex, model: str) -> None:
        self._index = index
        self._model = model
        self._lock = threading.Lock()
        self._mark: tuple[int, int] | None = None
        self._view: VectorView | None = None
        self._identity = (0, 0)
        self._grown = MaskCache()

    def view(self) -> VectorView | None:
        """Return the current state of the index; None if there is none for this model."""
        while (mark := self._index.mark()) is not None:
            try:
                with self._lock:
                    if mark != self._mark:
                        self._view = self._follow()
                        self._mark = mark
                    return self._view
            except DamagedIndexError:
                # The index may have been replaced in the meantime.
                if mark == self._index.mark():
                    raise
        return None

    def forget(self) -> None:
        """Close the index."""
        with self._lock:
            self._view, self._mark = None, None

    def discard(self) -> None:
        """Discard an unusable index; the next refresh rebuilds it."""
        self.forget()
        self._index.discard()

    def _follow(self) -> VectorView | None:
        state = self._index.state()
        if state is None or state.model != self._model or not state.rows:
            return None
        files = self._index.columns(state)
        identity = files.identity()
        # Another index may have been created under the same folder name in the meantime.
        if self._view is None or identity != self._identity:
            files.check(state.extents)
            self._identity, self._grown = identity, MaskCache()
        return VectorView(files, state, self._grown)


class VectorView:
    """One immutable state of the index."""

    def __init__(self, files: Columns, state: VectorIndexState, grown: MaskCache) -> None:
        self.rows = state.rows
        self.position = state.position
        self.complete = state.complete
        self.facets = Facets(files, state, grown)
        self._vectors = files.read(state.extents, index.VECTORS).reshape(-1, state.dimensions)
        self._keys = files.read(state.extents, index.KEYS)
        self._centre = files.read(state.extents, index.CENTRE)
        width = quantization.words(state.dimensions)
        self._signs = files.read(state.extents, index.SIGNS).reshape(-1, width, quantization.BLOCK)
        self._full = len(self._signs) * quantization.BLOCK

    @cached_property
    def _tail(self) -> Vector:
        """The rows of the incomplete block."""
        return widened(self._vectors[self._full :])

    @cached_property
    def sample(self) -> Vector:
        """An even sample of rows, to estimate the average cosine of a query."""
        return self.vectors(np.linspace(0, self.rows - 1, min(_SAMPLE, self.rows)).astype(np.intp))

    def search(self, query: Vector, selection: RowSelection | None, most: int) -> NearestRows:
        """Return the nearest rows, among all or in a selection."""
        rows = self._shortlist(query, selection)
        cosines = self.cosines(query, rows)
        if self._full < self.rows:
            tail, found = self._of_tail(query, selection)
            rows, cosines = np.concatenate([rows, tail]), np.concatenate([cosines, found])
        if len(rows) > most:
            best = np.argpartition(-cosines, most)[:most]
            rows, cosines = rows[best], cosines[best]
        order = np.argsort(-cosines, kind="stable")
        return NearestRows(rows[order], cosines[order])

    def _shortlist(self, query: Vector, selection: RowSelection | None) -> NDArray[np.intp]:
        """Return the rows with binary codes that are to be rescored exactly."""
        if not self._full:
            return np.empty(0, np.intp)
        asked = quantization.of_rows(query[None], self._centre)[0]
        if selection is None:
            return quantization.nearest(self._signs, asked, _EXACT)
        if selection.mask is not None:
            return quantization.nearest(self._signs, asked, _EXACT, selection.mask[: self._full])
        rows = selection.few[: np.searchsorted(selection.few, self._full)]
        return rows if len(rows) <= _FEW else quantization.nearest_of(self._signs, rows, asked, _EXACT)

    def _of_tail(self, query: Vector, selection: RowSelection | None) -> tuple[NDArray[np.intp], Vector]:
        """Return the rows without binary codes, and their cosines."""
        if selection is None:
            return np.arange(self._full, self.rows), quantization.cosines(self._tail, query)
        rows = selection.since(self._full)
        if selection.mask is None:
            return rows, quantization.cosines(self._tail[rows - self._full], query)
        return rows, quantization.cosines(self._tail, query)[rows - self._full]

    def cosines(self, query: Vector, rows: NDArray[np.intp]) -> Vector:
        """Return the exact cosine of each given row."""
        return quantization.cosines(self.vectors(rows), query)

    def vectors(self, rows: NDArray[np.intp]) -> Vector:
        """Return the vectors of some rows."""
        return widened(self._vectors.take(rows, axis=0))

    def keys(self, rows: NDArray[np.intp]) -> list[int]:
        """Return the keys of some rows."""
        found: list[int] = self._keys[rows].tolist()
        return found

    def rows_of(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the rows of keys, and whether each key exists."""
        places = np.minimum(np.searchsorted(self._keys, keys), self.rows - 1)
        return places, self._keys[places] == keys


def widened(halves: NDArray[np.float16]) -> Vector:
    """Convert float16 to float32 by shifting bits, seven times as fast as numpy.

    Sign, exponent and fraction move to their float32 positions, and the multiplication corrects the exponent
    bias. Correct for all values except infinity, which no vector contains.
    """
    bits = halves.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _SIGN_AND_NUMBER
    found: Vector = bits.view(np.float32)
    found *= _EXPONENT
    return found
