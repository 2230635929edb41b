"""Speed and size of a large library, with made-up texts and vectors: see `synthetic`."""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jackfield_capability_types.knowledge import Filters
from jackfield_kb.library import Access, Library
from jackfield_kb.vectors.index import VectorIndex
from jackfield_kb.vectors.search import VectorReader

from bench.clock import table
from bench.retrieval.synthetic import Corpus, SyntheticModel

USER = Access.of("somebody")
_BATCH = 2_000
_QUERIES = 200
_WHILE_LOADING = 5_000


class Times(NamedTuple):
    """What the searches of one round took, in milliseconds."""

    half: float
    most: float
    """99 of 100 took less."""

    processor: float


def run(rounds: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "knowledge"
        corpus = Corpus()
        print(f"## Retrieval, {count:,} records (made-up texts and vectors, 384 dimensions)\n")
        _load(folder, corpus, count)
        library = Library(folder, embedder=SyntheticModel())
        kinds: dict[str, Callable[[], Filters | None]] = {
            "type, tag and dates (1 in 70 passes)": corpus.filters,
            "type (1 in 5 passes)": lambda: Filters(type="person"),
            "namespace alone (9 in 10 pass)": lambda: None,
        }
        taken = {
            kind: [_searches(library, corpus, make) for _ in range(rounds)] for kind, make in kinds.items()
        }
        rows = [
            (
                kind,
                *(f"{statistics.median(figures):.2f}" for figures in zip(*times, strict=True)),
                f"{min(each.most for each in times):.2f}",
            )
            for kind, times in taken.items()
        ]
        table(("top 10 of both searches, filtered by", "p50 ms", "p99 ms", "CPU ms", "best p99"), rows)
        print(f"Beyond embedding the query. Median of {rounds} rounds of {_QUERIES} searches.\n")
        _size(library)
        _missed(folder, corpus)
        _while_loading(library, folder, corpus, count)
        library.close()


def _load(folder: Path, corpus: Corpus, count: int) -> None:
    library = Library(folder, embedder=SyntheticModel())
    written = 0.0
    for first in range(0, count, _BATCH):
        records = list(corpus.records(first, min(_BATCH, count - first)))
        start = time.perf_counter()
        library.write([(None, records)])
        written += time.perf_counter() - start
    start = time.perf_counter()
    library.refresh()
    indexed = time.perf_counter() - start
    library.close()
    opened = Library(folder, embedder=SyntheticModel())
    start = time.perf_counter()
    opened.search(corpus.query(), access=USER)
    first_search = time.perf_counter() - start
    opened.close()
    rows = [
        (f"written, {_BATCH:,} at a time, durable", f"{count / written:,.0f} records a second"),
        ("indexed, both, without embedding", f"{count / indexed:,.0f} records a second"),
        ("opened and first search", f"{first_search:.2f} s"),
    ]
    table(("loading", ""), rows)


def _searches(library: Library, corpus: Corpus, filters: Callable[[], Filters | None]) -> Times:
    walls, processor = [], 0.0
    for _ in range(_QUERIES):
        query, narrowed = corpus.query(), filters()
        # The same query before, without a filter: its vector is then known.
        library.search(query, access=USER, namespace="public", limit=1)
        start, worked = time.perf_counter(), time.thread_time()
        library.search(query, access=USER, namespace="studio", filters=narrowed, limit=10)
        walls.append(time.perf_counter() - start)
        processor += time.thread_time() - worked
    half, most = np.quantile(walls, [0.5, 0.99]) * 1000
    return Times(float(half), float(most), processor / _QUERIES * 1000)


def _size(library: Library) -> None:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    status = {name: value for name, _, value in (line.partition(":") for line in lines)}
    disk = library.stats().bytes
    rows = [
        ("memory of this process", f"{_megabytes(status['VmRSS'])} MB"),
        ("of that its own, not mapped files", f"{_megabytes(status['RssAnon'])} MB"),
        *((f"{part} on disk", f"{size / 1e6:.0f} MB") for part, size in disk.items()),
    ]
    table(("size", ""), rows)


def _megabytes(field: str) -> int:
    return int(field.removesuffix("kB")) // 1024


def _missed(folder: Path, corpus: Corpus) -> None:
    """Compare the quick look with an exact one over all vectors."""
    model = SyntheticModel()
    view = VectorReader(VectorIndex(folder / "vectors"), model.model).view()
    assert view is not None
    hits = 0
    for _ in range(20):
        query = model.embed([corpus.query()])[0]
        exact = np.concatenate(
            [
                view.cosines(query, np.arange(start, min(start + 50_000, view.rows)))
                for start in range(0, view.rows, 50_000)
            ]
        )
        best = np.argpartition(-exact, 10)[:10]
        hits += len(set(view.search(query, None, 10).rows.tolist()) & set(best.tolist()))
    print(f"Of the ten nearest vectors {hits / 200:.3f} are found (20 queries, no filter).\n")


def _loader(folder: str, first: int, loaded: Event) -> None:
    library = Library(Path(folder), embedder=SyntheticModel())
    corpus = Corpus(seed=9)
    for start in range(first, first + _WHILE_LOADING, 500):
        library.write([(None, list(corpus.records(start, 500)))])
        library.refresh()
    library.close()
    loaded.set()


def _while_loading(library: Library, folder: Path, corpus: Corpus, count: int) -> None:
    """Search here while another process writes and indexes."""
    context = multiprocessing.get_context("spawn")
    loaded = context.Event()
    child = context.Process(target=_loader, args=(str(folder), count, loaded))
    child.start()
    walls, seen = [], count
    while not loaded.is_set():
        start = time.perf_counter()
        library.search(corpus.query(), access=USER, namespace="studio", filters=corpus.filters(), limit=10)
        walls.append(time.perf_counter() - start)
        seen = max(seen, library.stats().passages)
    child.join()
    half, most = np.quantile(walls, [0.5, 0.99]) * 1000
    print(
        f"While another process loads {_WHILE_LOADING:,} more, 500 at a time: {len(walls)} searches, "
        f"p50 {half:.1f} ms, p99 {most:.1f} ms, "
        f"and {seen - count:,} of the new records were found before it had ended.\n"
    )
