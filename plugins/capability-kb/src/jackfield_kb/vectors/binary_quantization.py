"""Binary quantisation: a vector becomes one bit per dimension, for the side of the centre that it lies on.

Vectors that point in the same direction agree in most bits, so the Hamming distance estimates their angle
with a sixteenth of the memory and three numpy instructions. Rows are stored in blocks; a block holds the
first word of every row, then the second, so a first pass over the leading words reads only those.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 2_048
"""Rows per block; an incomplete block has no codes and is searched exactly."""

LOOK = 3
"""The number of 64-bit words in the first pass; their distance fits into a byte."""

_WORD = 64
_AT_ONCE = 16
"""Blocks per step, so that intermediate results stay in the CPU cache."""

_WIDER, _SHARE = 6, 200
"""The first pass keeps this many times the wanted rows, and at least this fraction (1/n) of all rows."""

_COUNTED = 8_192
_STRETCH = 64
"""The size of the sample that estimates the threshold, and the length of its runs."""

Blocks = NDArray[np.uint64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]
Figures = NDArray[np.uint8] | NDArray[np.uint16]


def words(dimensions: int) -> int:
    """Return the number of 64-bit words per row."""
    return -(-dimensions // _WORD)


def of_rows(vectors: NDArray[np.float32], centre: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return the binary codes of rows, as rows by words."""
    bits = np.zeros((len(vectors), words(vectors.shape[1]) * _WORD), np.bool_)
    np.greater(vectors, centre, out=bits[:, : vectors.shape[1]])
    return np.packbits(bits, axis=1).view(np.uint64)


def of_block(vectors: NDArray[np.float32], centre: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return the binary codes of a block, as words by rows."""
    return np.ascontiguousarray(of_rows(vectors, centre).T)


def nearest(blocks: Blocks, query: NDArray[np.uint64], most: int, allowed: Mask | None = None) -> Rows:
    """Return about `most` rows with the smallest Hamming distance, among all or the allowed rows."""
    first = first_look(blocks, query[:LOOK])
    if blocks.shape[1] <= LOOK:
        return smallest(first, most, allowed)
    count = len(first) if allowed is None else int(np.count_nonzero(allowed))
    rows = smallest(first, _wider(most, count), allowed)
    return _second_look(blocks, rows, first[rows], query[LOOK:], most)


def nearest_of(blocks: Blocks, rows: Rows, query: NDArray[np.uint64], most: int) -> Rows:
    """Return the nearest of some given rows, like `nearest`."""
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
    """Return the Hamming distance of every row to the leading words of a query."""
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
    """Return the Hamming distance of given rows to the words of a query, starting at word `first`."""
    width, flat = blocks.shape[1], blocks.reshape(-1)
    places = rows // BLOCK * (width * BLOCK) + rows % BLOCK + first * BLOCK
    found = np.zeros(len(rows), np.uint16)
    for word in query:
        found += np.bitwise_count(flat.take(places) ^ word)
        places += BLOCK
    return found


def smallest(figures: Figures, most: int, allowed: Mask | None = None) -> Rows:
    """Return the positions of at least the `most` smallest values, among all or the allowed ones."""
    stride = 1 + len(figures) // _COUNTED
    if stride > 1:
        found = _up_to(figures, allowed, _line(figures, allowed, most, stride))
        # The sample may not be representative.
        if most <= len(found) <= 4 * most:
            return found
    return _up_to(figures, allowed, _line(figures, allowed, most, 1))


def _line(figures: Figures, allowed: Mask | None, most: int, stride: int) -> int:
    """Return the value that `most` values do not exceed, estimated from a sample if `stride` is above 1."""
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
    """Return the dot product of each row with a query, without BLAS, which would start threads for it."""
    found: NDArray[np.float32] = np.vecdot(vectors, query)
    return found
