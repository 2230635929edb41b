"""Reading the vector index: the passages whose meaning is nearest to a query's."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jackfield_kb.errors import DamagedIndexError
from jackfield_kb.vectors import columns, signs
from jackfield_kb.vectors.columns import Columns
from jackfield_kb.vectors.index import VectorIndex, VectorState
from jackfield_kb.vectors.selection import Facets, Grown, Selection

_EXACT = 500
"""How many rows get an exact look after the quick one; that finds more than 99 of 100 of the ten nearest."""

_FEW = 500
"""So few rows are looked at exactly without a quick look."""

_SAMPLE = 256
_SIGN_AND_NUMBER = np.int32(0x0FFF_E000 - (1 << 31))
_EXPONENT = np.float32(2.0**112)

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
        self._identity = (0, 0)
        self._grown = Grown()

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
            self._view, self._mark = None, None

    def discard(self) -> None:
        """Forget an index that cannot be used; the next refresh makes it anew."""
        self.forget()
        self._index.discard()

    def _follow(self) -> VectorView | None:
        state = self._index.state()
        if state is None or state.model != self._model or not state.rows:
            return None
        files = self._index.columns(state)
        identity = files.identity()
        # The name of the folder does not tell: another index may have come under it while nobody looked.
        if self._view is None or identity != self._identity:
            files.check(state.extents)
            self._identity, self._grown = identity, Grown()
        return VectorView(files, state, self._grown)


class VectorView:
    """One state of the index; nothing that is added later shows in it."""

    def __init__(self, files: Columns, state: VectorState, grown: Grown) -> None:
        self.rows = state.rows
        self.position = state.position
        self.facets = Facets(files, state, grown)
        self._vectors = files.read(state.extents, columns.VECTORS).reshape(-1, state.dimensions)
        self._keys = files.read(state.extents, columns.KEYS)
        self._centre = files.read(state.extents, columns.CENTRE)
        width = signs.words(state.dimensions)
        self._signs = files.read(state.extents, columns.SIGNS).reshape(-1, width, signs.BLOCK)
        self._full = len(self._signs) * signs.BLOCK

    @cached_property
    def _tail(self) -> Vector:
        """The rows of the block that is not full yet."""
        return widened(self._vectors[self._full :])

    @cached_property
    def sample(self) -> Vector:
        """Some rows, spread over all: what a query is compared with to see what is unusual."""
        return self.vectors(np.linspace(0, self.rows - 1, min(_SAMPLE, self.rows)).astype(np.intp))

    def search(self, query: Vector, selection: Selection | None, most: int) -> Near:
        """The nearest rows, of all or of a selection."""
        rows = self._shortlist(query, selection)
        cosines = self.cosines(query, rows)
        if self._full < self.rows:
            tail, found = self._of_tail(query, selection)
            rows, cosines = np.concatenate([rows, tail]), np.concatenate([cosines, found])
        if len(rows) > most:
            best = np.argpartition(-cosines, most)[:most]
            rows, cosines = rows[best], cosines[best]
        order = np.argsort(-cosines, kind="stable")
        return Near(rows[order], cosines[order])

    def _shortlist(self, query: Vector, selection: Selection | None) -> NDArray[np.intp]:
        """The rows with signs that deserve an exact look."""
        if not self._full:
            return np.empty(0, np.intp)
        asked = signs.of_rows(query[None], self._centre)[0]
        if selection is None:
            return signs.nearest(self._signs, asked, _EXACT)
        if selection.mask is not None:
            return signs.nearest(self._signs, asked, _EXACT, selection.mask[: self._full])
        rows = selection.few[: np.searchsorted(selection.few, self._full)]
        return rows if len(rows) <= _FEW else signs.nearest_of(self._signs, rows, asked, _EXACT)

    def _of_tail(self, query: Vector, selection: Selection | None) -> tuple[NDArray[np.intp], Vector]:
        """The rows without signs, and their cosines."""
        if selection is None:
            return np.arange(self._full, self.rows), signs.cosines(self._tail, query)
        rows = selection.since(self._full)
        if selection.mask is None:
            return rows, signs.cosines(self._tail[rows - self._full], query)
        return rows, signs.cosines(self._tail, query)[rows - self._full]

    def cosines(self, query: Vector, rows: NDArray[np.intp]) -> Vector:
        """The exact cosine of given rows."""
        return signs.cosines(self.vectors(rows), query)

    def vectors(self, rows: NDArray[np.intp]) -> Vector:
        """Some rows."""
        return widened(self._vectors.take(rows, axis=0))

    def keys(self, rows: NDArray[np.intp]) -> list[int]:
        """The passages of some rows."""
        found: list[int] = self._keys[rows].tolist()
        return found

    def rows_of(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The rows of passages, and whether there really is one."""
        places = np.minimum(np.searchsorted(self._keys, keys), self.rows - 1)
        return places, self._keys[places] == keys


def widened(halves: NDArray[np.float16]) -> Vector:
    """Numbers of 16 bits in 32, by moving the bits: seven times as quick as numpy, which asks at every one.

    Sign, exponent and fraction move to where 32 bits have them, and the product makes up for an exponent
    that is counted from elsewhere. Right for all numbers but infinity, which no vector has.
    """
    bits = halves.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _SIGN_AND_NUMBER
    found: Vector = bits.view(np.float32)
    found *= _EXPONENT
    return found
