"""The vector index: the quick scan has high recall, and rows are added and removed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from jackfield_capability_types.knowledge import Record
from jackfield_kb.library import Library
from jackfield_kb.records.interface import Numbered
from jackfield_kb.vectors import binary_quantization as quantization
from jackfield_kb.vectors.index import Rows, VectorIndex, added
from jackfield_kb.vectors.search import RowSelection, VectorReader, VectorView
from kb_fixtures import EVERYTHING, WordModel, ids, notes, opened
from numpy.typing import NDArray

ROWS, DIMENSIONS = 3 * quantization.BLOCK + 777, 100


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float32]:
    random = np.random.default_rng(5)
    centres = random.standard_normal((60, DIMENSIONS)) + 0.7
    rows = centres[random.integers(0, 60, ROWS)] + 0.8 * random.standard_normal((ROWS, DIMENSIONS))
    found: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory, vectors: NDArray[np.float32]) -> VectorView:
    index = VectorIndex(tmp_path_factory.mktemp("vectors"))
    state = index.start_rebuild("m")
    # In batches of different sizes.
    for start in range(0, ROWS, 1_000):
        part = vectors[start : start + 1_000]
        items = [Numbered(start + n + 1, Record(f"doc:{start + n}", "", "")) for n in range(len(part))]
        state = added(index.columns(state), state, Rows(items, [1] * len(part), part))
    index.record(state)
    found = VectorReader(index, "m").view()
    assert found is not None
    return found


@pytest.mark.parametrize("share", [1.0, 0.5, 0.12, 0.05, 0.001])
def test_the_nearest_vectors_among_the_candidates_are_found(
    view: VectorView, vectors: NDArray[np.float32], share: float
) -> None:
    random = np.random.default_rng(6)
    mask = None if share == 1.0 else random.random(ROWS) < share
    allowed = np.arange(ROWS) if mask is None else np.flatnonzero(mask)
    hit = total = 0
    for row in random.integers(0, ROWS, 40):
        query = vectors[row] + 0.04 * random.standard_normal(DIMENSIONS)
        query = (query / np.linalg.norm(query)).astype(np.float32)
        near = view.search(query, None if mask is None else RowSelection.of(mask), 10)
        assert set(near.rows) <= set(allowed)
        assert list(near.cosines) == sorted(near.cosines, reverse=True)
        exact = allowed[np.argsort(-(vectors[allowed] @ query))[:10]]
        hit += len(set(near.rows) & set(exact))
        total += len(exact)
        assert exact[0] in near.rows
    assert hit / total > 0.98


def test_added_rows_are_visible_to_other_readers(tmp_path: Path) -> None:
    writer, reader = opened(tmp_path, WordModel()), opened(tmp_path, WordModel())
    for start in range(0, 2_400, 600):
        writer.write([(None, notes(600, first=start))])
        writer.refresh()
        for number in (0, start, start + 599):
            assert first(reader, number) == f"doc:{number}"
    writer.close()
    reader.close()


def test_rows_of_deleted_records_are_eventually_removed(tmp_path: Path) -> None:
    library = opened(tmp_path, WordModel())
    library.write([(None, notes(2_500))])
    library.refresh()
    before = library.stats().bytes["vectors"]
    library.delete([f"doc:{number}" for number in range(2_000)])
    library.refresh()
    assert library.stats().bytes["vectors"] < before / 2
    for number in (2_000, 2_499):
        assert first(library, number) == f"doc:{number}"
    assert "doc:10" not in ids(library.search("subject10", access=EVERYTHING))
    library.write([(None, notes(100, first=5_000))])
    library.refresh()
    assert first(library, 5_050) == "doc:5050"
    library.close()


def first(library: Library, number: int) -> str:
    return ids(library.search(f"subject{number}", access=EVERYTHING, limit=1))[0]


@pytest.mark.parametrize("period", [1, 5, 10, 64, 1_000, 4_096])
def test_a_bounded_number_of_smallest_values_is_selected_in_any_order(period: int) -> None:
    random = np.random.default_rng(7)
    figures = random.integers(100, 300, 600_000).astype(np.uint16)
    # A filter may pass one row in `period`, always at the same position.
    allowed = None if period == 1 else np.arange(len(figures)) % period == period - 1
    passing = np.sort(figures if allowed is None else figures[allowed])
    wanted = min(500, len(passing))
    found = quantization.smallest(figures, wanted, allowed)
    assert allowed is None or allowed[found].all()
    assert set(np.flatnonzero((figures < passing[wanted - 1]) & (True if allowed is None else allowed))) <= {
        *found.tolist()
    }
    assert wanted <= len(found) <= 4 * wanted + np.count_nonzero(passing == passing[wanted - 1])


def test_both_scans_count_the_differing_bits() -> None:
    random = np.random.default_rng(8)
    blocks = random.integers(0, 1 << 63, (37, 5, quantization.BLOCK)).astype(np.uint64)
    query = random.integers(0, 1 << 63, 5).astype(np.uint64)
    first = quantization.first_look(blocks, query[: quantization.LOOK])
    rows = random.integers(0, len(first), 50)
    second = quantization.differing(blocks, rows, query[quantization.LOOK :], quantization.LOOK)
    for place, row in enumerate(rows):
        pair = blocks[row // quantization.BLOCK, :, row % quantization.BLOCK]
        counts = [(int(a) ^ int(b)).bit_count() for a, b in zip(pair, query, strict=True)]
        assert first[row] == sum(counts[: quantization.LOOK])
        assert second[place] == sum(counts[quantization.LOOK :])
