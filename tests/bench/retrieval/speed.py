"""Speed and size of a large library with synthetic texts and vectors; see `synthetic`."""

from __future__ import annotations

import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jackfield_capability_types.knowledge import Filters
from jackfield_kb.library import Access, Library
from jackfield_kb.vectors.index import VectorIndex
from jackfield_kb.vectors.search import VectorReader

from bench.report import Report, RunOptions, Table, rounds_text
from bench.retrieval.synthetic import Corpus, SyntheticModel

SPEED = Table(
    "speed",
    "Search",
    "records and filter",
    {
        "p50, ms": ".1f",
        "p99, ms": ".1f",
        "p50 under load": ".1f",
        "p99 under load": ".1f",
    },
)
LIBRARY = Table(
    "library",
    "Search",
    "records",
    {
        "written a second": ",.0f",
        "indexed a second": ",.0f",
        "first search, s": ".2f",
        "memory, MB": ".0f",
        "of it its own": ".0f",
        "on disk, MB": ".0f",
        "nearest ten found": ".3f",
        "p50 while loading, ms": ".1f",
        "p99 while loading, ms": ".1f",
    },
)
SIZES, SIZES_FULL = (10_000, 100_000), (10_000, 100_000, 1_000_000)
MOST_ROUNDS = 3
USER = Access.of("somebody")
_BATCH = 2_000
_QUERIES = 200
_WHILE_LOADING = 5_000


class Times(NamedTuple):
    """The search times of one round in milliseconds."""

    half: float
    most: float
    """The 99th percentile."""


class Loaded(NamedTuple):
    """The speed of a load, and the time of the first search."""

    written: float
    indexed: float
    first_search: float


def run(report: Report, asked: RunOptions) -> None:
    rounds = min(asked.rounds, MOST_ROUNDS)
    searched: dict[str, list[float]] = {}
    libraries: dict[str, list[float]] = {}
    for count in SIZES_FULL if asked.full else SIZES:
        with tempfile.TemporaryDirectory() as name:
            found, libraries[f"{count:,}"] = _apart(Path(name) / "knowledge", count, rounds)
        searched |= {f"{count:,}: {kind}": row for kind, row in found.items()}
    caption = (
        "Top 10 of both searches with snippets, without embedding the query; synthetic texts and vectors "
        f"with 384 dimensions; {rounds_text(rounds)} of {_QUERIES} searches, on an idle machine and "
        "under load."
    )
    report.table(SPEED, caption, searched)
    caption = (
        f"The libraries; *while loading* means that another process adds {_WHILE_LOADING:,} records, 500 at "
        "a time."
    )
    report.table(LIBRARY, caption, libraries)


def _apart(folder: Path, count: int, rounds: int) -> tuple[dict[str, list[float]], list[float]]:
    """Run in another process: the memory of this one includes earlier measurements."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(_measured, folder, count, rounds).result()


def _measured(folder: Path, count: int, rounds: int) -> tuple[dict[str, list[float]], list[float]]:
    corpus = Corpus()
    loaded = _load(folder, corpus, count)
    library = Library(folder, embedder=SyntheticModel())
    kinds: dict[str, Callable[[], Filters | None]] = {
        "type, tag and dates (1 in 70 passes)": corpus.filters,
        "type (1 in 5)": lambda: Filters(type="person"),
        "namespace alone (9 in 10)": lambda: None,
    }
    alone: dict[str, list[Times]] = {kind: [] for kind in kinds}
    beside: dict[str, list[Times]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, make in kinds.items():
            alone[kind].append(_searches(library, corpus, make))
            with _company():
                beside[kind].append(_searches(library, corpus, make))
    found = {kind: [*_medians(alone[kind]), *_medians(beside[kind])] for kind in kinds}
    try:
        sizes = _sizes(library)
        return found, [
            *loaded,
            *sizes,
            _hits(folder, corpus),
            *_while_loading(library, folder, corpus, count),
        ]
    finally:
        library.close()


def _medians(rounds: list[Times]) -> list[float]:
    return [statistics.median(figures) for figures in zip(*rounds, strict=True)]


@contextmanager
def _company() -> Iterator[None]:
    """Run another process that is always busy."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            yield
        finally:
            busy.kill()


def _load(folder: Path, corpus: Corpus, count: int) -> Loaded:
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
    return Loaded(count / written, count / indexed, first_search)


def _searches(library: Library, corpus: Corpus, filters: Callable[[], Filters | None]) -> Times:
    walls = []
    for _ in range(_QUERIES):
        query, narrowed = corpus.query(), filters()
        # The same query without a filter runs before, so that its vector is cached.
        library.search(query, access=USER, namespace="public", limit=1)
        start = time.perf_counter()
        library.search(query, access=USER, namespace="studio", filters=narrowed, limit=10)
        walls.append(time.perf_counter() - start)
    half, most = np.quantile(walls, [0.5, 0.99]) * 1000
    return Times(float(half), float(most))


def _sizes(library: Library) -> tuple[float, float, float]:
    """Return megabytes in memory, those private to the process, and on disk."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    status = {name: value for name, _, value in (line.partition(":") for line in lines)}
    disk = sum(library.stats().bytes.values()) / 1e6
    return _megabytes(status["VmRSS"]), _megabytes(status["RssAnon"]), disk


def _megabytes(field: str) -> int:
    return int(field.removesuffix("kB")) // 1024


def _hits(folder: Path, corpus: Corpus) -> float:
    """Return the recall of the quick search for the ten nearest vectors, compared with an exact search."""
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
    return hits / 200


def _loader(folder: str, first: int, loaded: Event) -> None:
    library = Library(Path(folder), embedder=SyntheticModel())
    corpus = Corpus(seed=9)
    for start in range(first, first + _WHILE_LOADING, 500):
        library.write([(None, list(corpus.records(start, 500)))])
        library.refresh()
    library.close()
    loaded.set()


def _while_loading(library: Library, folder: Path, corpus: Corpus, count: int) -> Times:
    """Search while another process writes and indexes."""
    context = multiprocessing.get_context("spawn")
    loaded = context.Event()
    child = context.Process(target=_loader, args=(str(folder), count, loaded))
    child.start()
    walls = []
    while not loaded.is_set() and child.is_alive():
        start = time.perf_counter()
        library.search(corpus.query(), access=USER, namespace="studio", filters=corpus.filters(), limit=10)
        walls.append(time.perf_counter() - start)
    child.join()
    half, most = np.quantile(walls, [0.5, 0.99]) * 1000
    return Times(float(half), float(most))
