"""Binary quantisation: a vector as one bit per dimension, which side of the centre it lies on.

Vectors that point in the same direction agree in most bits, so the Hamming distance estimates their angle
with a sixteenth of the memory and three numpy instructions. Rows are stored in blocks; a block holds the
first word of every row, then the second, so a first pass over the leading words reads only those.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 2_048
"""Rows of a block; one that is not full yet has no signs, and is looked at exactly."""

LOOK = 3
"""Words of the first look: a byte counts the bits in which they differ."""

_WORD = 64
_AT_ONCE = 16
"""Blocks that are counted at once: what lies between the steps then stays in the processor's cache."""

_WIDER, _SHARE = 6, 200
"""After the first look so many times what is wanted gets the second, and at least one row in so many: the
more rows there are, the more the nearest stand out."""

_COUNTED = 8_192
_STRETCH = 64
"""Of very many figures so many tell where to draw the line, taken in stretches of so many."""

Blocks = NDArray[np.uint64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]
Figures = NDArray[np.uint8] | NDArray[np.uint16]


def words(dimensions: int) -> int:
    """How many words a row takes."""
    return -(-dimensions // _WORD)


def of_rows(vectors: NDArray[np.float32], centre: NDArray[np.float32]) -> NDArray[np.uint64]:
    """The signs of each row: rows by words."""
    bits = np.zeros((len(vectors), words(vectors.shape[1]) * _WORD), np.bool_)
    np.greater(vectors, centre, out=bits[:, : vectors.shape[1]])
    return np.packbits(bits, axis=1).view(np.uint64)


def of_block(vectors: NDArray[np.float32], centre: NDArray[np.float32]) -> NDArray[np.uint64]:
    """The signs of a block: words by rows."""
    return np.ascontiguousarray(of_rows(vectors, centre).T)


def nearest(blocks: Blocks, query: NDArray[np.uint64], most: int, allowed: Mask | None = None) -> Rows:
    """About so many rows, those that differ least from a query, of all or of those a mask allows."""
    first = first_look(blocks, query[:LOOK])
    if blocks.shape[1] <= LOOK:
        return smallest(first, most, allowed)
    count = len(first) if allowed is None else int(np.count_nonzero(allowed))
    rows = smallest(first, _wider(most, count), allowed)
    return _second_look(blocks, rows, first[rows], query[LOOK:], most)


def nearest_of(blocks: Blocks, rows: Rows, query: NDArray[np.uint64], most: int) -> Rows:
    """The same among given rows only."""
    first = differing(blocks, rows, query[:LOOK])
    if blocks.shape[1] <= LOOK:
        return rows[smallest(first, most)]
    places = smallest(first, _wider(most, len(rows)))
    return _second_look(blocks, rows[places], first[places], query[LOOK:], most)


def _wider(most: int, count: int) -> int:
    return max(_WIDER * most, count // _SHARE)


def _second_look(blocks: Blocks, rows: Rows, first: Figures, query: NDArray[np.uint64], most: int) -> Rows:
    return rows[smallest(first + differing(blocks, rows, query, LOOK), most)]


def first_look(blocks: Blocks, query: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """In how many bits each row of some blocks differs from the leading words of a query."""
    count, _, rows = blocks.shape
    width = len(query)
    found = np.empty((count, rows), np.uint8)
    apart = np.empty((_AT_ONCE, width, rows), np.uint64)
    counted = np.empty((_AT_ONCE, width, rows), np.uint8)
    for start in range(0, count, _AT_ONCE):
        part = blocks[start : start + _AT_ONCE, :width]
        size = len(part)
        np.bitwise_xor(part, query[:, None], out=apart[:size])
        np.bitwise_count(apart[:size], out=counted[:size])
        np.add.reduce(counted[:size], axis=1, dtype=np.uint8, out=found[start : start + size])
    return found.reshape(-1)


def differing(blocks: Blocks, rows: Rows, query: NDArray[np.uint64], first: int = 0) -> NDArray[np.uint16]:
    """In how many bits some rows differ from the words of a query, which begin at word `first`."""
    width, flat = blocks.shape[1], blocks.reshape(-1)
    places = rows // BLOCK * (width * BLOCK) + rows % BLOCK + first * BLOCK
    found = np.zeros(len(rows), np.uint16)
    for word in query:
        found += np.bitwise_count(flat.take(places) ^ word)
        places += BLOCK
    return found


def smallest(figures: Figures, most: int, allowed: Mask | None = None) -> Rows:
    """The positions of about so many smallest figures, never fewer, of all or of those a mask allows."""
    stride = 1 + len(figures) // _COUNTED
    if stride > 1:
        found = _up_to(figures, allowed, _line(figures, allowed, most, stride))
        # A part stands for all unless what is looked for stands elsewhere.
        if most <= len(found) <= 4 * most:
            return found
    return _up_to(figures, allowed, _line(figures, allowed, most, 1))


def _line(figures: Figures, allowed: Mask | None, most: int, stride: int) -> int:
    """The figure that so many reach, as far as every so manieth stretch tells; a little generous then."""
    part = _stretches(figures, stride)
    if allowed is not None:
        part = part[_stretches(allowed, stride)]
    reached = np.cumsum(np.bincount(part.reshape(-1)))
    wanted = most if stride == 1 else 1.5 * most / stride
    return int(np.searchsorted(reached, wanted))


def _stretches(values: NDArray[Any], stride: int) -> NDArray[Any]:
    if stride == 1:
        return values
    whole = len(values) // _STRETCH * _STRETCH
    return values[:whole].reshape(-1, _STRETCH)[::stride]


def _up_to(figures: Figures, allowed: Mask | None, line: int) -> Rows:
    found = np.flatnonzero(figures <= line)
    return found if allowed is None else found[allowed[found]]


def cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The product of each row with a query, on this thread: BLAS would wake others for a job this small."""
    found: NDArray[np.float32] = np.vecdot(vectors, query)
    return found
