"""Which rows a search may find, from scopes, type, tags and dates."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
from jackfield_capability_types.knowledge import Filters
from numpy.typing import NDArray

from jackfield_kb.access import PERSONAL
from jackfield_kb.truth.rows import in_microseconds
from jackfield_kb.vectors import columns
from jackfield_kb.vectors.columns import Columns
from jackfield_kb.vectors.index import NEVER, Names, VectorState

_SPARSE = 5
"""When fewer than one row in so many is asked for, picking those out is quicker than reading all."""

_MASKS = 32
_SELECTIONS = 48
_EVER = np.iinfo(np.int64).max
_ORDINAL = np.uint64(16)

Mask = NDArray[np.bool_]
RowNumbers = NDArray[np.intp]


class Selection(NamedTuple):
    """Some rows: one by one in their order when they are few, else as a mask."""

    size: int
    total: int
    """Among how many."""

    few: RowNumbers
    mask: Mask | None

    @classmethod
    def of(cls, mask: Mask) -> Selection:
        """The rows that a mask shows."""
        size = int(np.count_nonzero(mask))
        if size * _SPARSE < len(mask):
            return cls(size, len(mask), np.flatnonzero(mask), None)
        return cls(size, len(mask), np.empty(0, np.intp), mask)

    def since(self, row: int) -> RowNumbers:
        """The rows from one on."""
        if self.mask is None:
            return self.few[np.searchsorted(self.few, row) :]
        return np.flatnonzero(self.mask[row:]) + row

    def holds(self, rows: RowNumbers) -> Mask:
        """Which of some rows are among these."""
        if self.mask is not None:
            return self.mask[rows]
        if not self.size:
            return np.zeros(len(rows), np.bool_)
        found: Mask = self.few[np.minimum(np.searchsorted(self.few, rows), self.size - 1)] == rows
        return found

    def only(self, passing: Callable[[RowNumbers | slice], Mask]) -> Selection:
        """Those of the rows that also pass a test, which is put to no more rows than it has to be."""
        if self.mask is not None:
            return Selection.of(self.mask & passing(slice(None)))
        rows = self.few[passing(self.few)]
        return Selection(len(rows), self.total, rows, None)


class Grown:
    """Masks that are carried on from one state of the index to the next: rows are only ever added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._masks: OrderedDict[Hashable, Mask] = OrderedDict()

    def mask(self, name: Hashable, rows: int, beyond: Callable[[int], Mask]) -> Mask:
        """The mask of a name for so many rows; `beyond` tells it from a row on."""
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
    """What rows can be selected by, in one state of the index."""

    def __init__(self, files: Columns, state: VectorState, grown: Grown) -> None:
        self._rows = state.rows
        self._grown = grown
        self._scopes = files.read(state.extents, columns.SCOPES)
        self._types = files.read(state.extents, columns.TYPES)
        self._updated = files.read(state.extents, columns.UPDATED)
        self._tags = files.read(state.extents, columns.TAGS).reshape(-1, 2)
        self._names = Names(files.read(state.extents, columns.NAMES).tobytes())
        removed = files.read(state.extents, columns.REMOVED)
        self._alive = _alive(files.read(state.extents, columns.KEYS), removed)
        self._lock = threading.Lock()
        self._selections: OrderedDict[Hashable, Selection | None] = OrderedDict()

    def select(self, scopes: frozenset[str] | None, filters: Filters | None) -> Selection | None:
        """The rows that may be found; None is all of them."""
        filters = filters or Filters()
        found = self._undated(scopes, filters.type, filters.tags)
        if filters.updated_from is None and filters.updated_until is None:
            return found
        return self._dated(found, filters)

    def _undated(
        self, scopes: frozenset[str] | None, type_: str | None, tags: tuple[str, ...]
    ) -> Selection | None:
        """The same without dates, which differ from query to query; the last ones are kept."""
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
    ) -> Selection | None:
        masks = [] if self._alive is None else [self._alive]
        if scopes is not None:
            masks.append(self._grown.mask(scopes, self._rows, partial(self._in_scopes, scopes)))
        if type_ is not None:
            masks.append(self._grown.mask(f"type:{type_}", self._rows, partial(self._of_type, type_)))
        masks += [self._grown.mask(f"tag:{tag}", self._rows, partial(self._tagged, tag)) for tag in tags]
        return Selection.of(reduce(np.logical_and, masks)) if masks else None

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
            # Tags stand in the order of their rows.
            beyond = self._tags[bisect_left(self._tags, first, key=lambda pair: int(pair[1])) :]
            found[beyond[beyond[:, 0] == code, 1] - first] = True
        return found

    def _dated(self, undated: Selection | None, filters: Filters) -> Selection:
        first, last = filters.updated_from, filters.updated_until
        earliest = NEVER + 1 if first is None else in_microseconds(first)
        latest = _EVER if last is None else in_microseconds(last)

        def passing(rows: RowNumbers | slice) -> Mask:
            moments = self._updated[rows]
            found: Mask = moments >= earliest
            found &= moments <= latest
            return found

        return Selection.of(passing(slice(None))) if undated is None else undated.only(passing)


def _coded(column: NDArray[np.uint32], codes: list[int | None]) -> Mask:
    known = [code for code in codes if code is not None]
    if len(known) == 1:
        found: Mask = column == known[0]
        return found
    return np.isin(column, known)


def _alive(keys: NDArray[np.uint64], removed: NDArray[np.uint64]) -> Mask | None:
    """The rows of records that are still there; None is all of them."""
    if not len(removed):
        return None
    starts = np.searchsorted(keys, removed << _ORDINAL)
    lengths = np.searchsorted(keys, (removed + np.uint64(1)) << _ORDINAL) - starts
    before = np.cumsum(lengths) - lengths
    alive = np.ones(len(keys), np.bool_)
    alive[np.repeat(starts - before, lengths) + np.arange(lengths.sum())] = False
    return alive
