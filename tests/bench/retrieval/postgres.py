"""Records in PostgreSQL: quality and speed of search on a host and inside PostgreSQL, and how hosts follow.

Both searches are measured in one run, one after the other for each query, so that their ratio is comparable.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jackfield_capability_types.knowledge import Evidence, Filters, Record
from jackfield_kb.embedders import EmbeddingModel
from jackfield_kb.library import Access, Library
from jackfield_kb.postgres.database import SessionPool
from jackfield_kb.postgres.records import PostgresRecords
from jackfield_kb.postgres.replica_search import ReplicaSearch
from jackfield_kb.postgres.search import PostgresSearch
from jackfield_testkit.postgres import PostgresServer

from bench.report import Report, RunOptions, Table
from bench.retrieval import judged_collections
from bench.retrieval.quality import MODEL, gain
from bench.retrieval.synthetic import Corpus, SyntheticModel

SECTION = "Search"
QUALITY = Table(
    "postgres-quality",
    SECTION,
    "collection",
    {"on a host": ".3f", "in PostgreSQL": ".3f", "difference": "+.3f", "from": "+.3f", "to": "+.3f"},
)
SPEED = Table(
    "postgres-speed",
    SECTION,
    "records and filter",
    {
        "p50 on a host, ms": ".1f",
        "p99 on a host, ms": ".1f",
        "p50 in PostgreSQL": ".1f",
        "p99 in PostgreSQL": ".1f",
        "ratio of p50": ".1f",
    },
)
HOSTS = Table(
    "postgres-hosts",
    SECTION,
    "records",
    {
        "written a second": ",.0f",
        "vectors stored a second": ",.0f",
        "new host searches words, s": ".1f",
        "new host complete, s": ".1f",
        "search tables filled, s": ".1f",
        "change seen after, ms (p50)": ".0f",
        "change seen after, ms (most)": ".0f",
    },
)
TABLES = (QUALITY, SPEED, HOSTS)
COUNT, COUNT_FULL = 10_000, 100_000
USER = Access.of("somebody")
_BATCH = 2_000
_QUERIES = 200
_CHANGES = 20


def run(report: Report, asked: RunOptions) -> None:
    if judged_collections.DATA.is_dir():
        names = judged_collections.NAMES if asked.full else judged_collections.SHORT
        quality(report, names)
    count = COUNT_FULL if asked.full else COUNT
    speed(report, count)


def in_postgres(url: str, model: EmbeddingModel) -> Library:
    records = PostgresRecords(SessionPool(url))
    return Library(Path("unused"), embedder=model, records=records, engine=_in_postgres(records, model))


def _in_postgres(records: PostgresRecords, model: EmbeddingModel) -> PostgresSearch:
    return PostgresSearch(records, model, lambda line: None)


def on_a_host(url: str, folder: Path, model: EmbeddingModel) -> Library:
    records = PostgresRecords(SessionPool(url))
    engine = ReplicaSearch(folder, records, model, lambda line: None)
    return Library(folder, embedder=model, records=records, engine=engine)


@contextmanager
def _server() -> Iterator[PostgresServer]:
    # As an operator would configure it for a table of this size.
    options = {"shared_buffers": "1GB", "maintenance_work_mem": "512MB", "max_wal_size": "4GB"}
    with PostgresServer.temporary(settings=options) as server:
        yield server


def quality(report: Report, names: Sequence[str]) -> None:
    """nDCG@10 of the questions with odd numbers; those with even numbers are for decisions."""
    rows: dict[str, list[float]] = {}
    with _server() as server, tempfile.TemporaryDirectory() as folder:
        for name in names:
            collected = judged_collections.load(name)
            url = server.create_database(name)
            there = in_postgres(url, MODEL)
            there.write([(None, collected.records)])
            there.refresh()
            here = on_a_host(url, Path(folder) / name, MODEL)
            here.refresh()
            values = [
                [judged_collections.ndcg(_ids(library, each.text), each.right) for library in (here, there)]
                for each in collected.questions[1::2]
            ]
            local, remote = (np.array(column) for column in zip(*values, strict=True))
            rows[collected.title] = [float(local.mean()), float(remote.mean()), *gain(remote - local)]
            here.close()
            there.close()
    caption = (
        "nDCG@10 of search on a host and of search inside PostgreSQL, for every second question, and the "
        "difference with the 95 % interval of a paired bootstrap."
    )
    report.table(QUALITY, caption, rows)


def _ids(library: Library, query: str) -> list[str]:
    found: Sequence[Evidence] = library.search(query, access=Access.everything(), limit=10, snippets=False)
    return [each.record.id for each in found]


class _Loaded(NamedTuple):
    written: float
    embedded: float


def speed(report: Report, count: int) -> None:
    corpus, model = Corpus(), SyntheticModel()
    with _server() as server, tempfile.TemporaryDirectory() as folder:
        url = server.create_database("speed")
        loader = on_a_host(url, Path(folder) / "loader", model)
        loaded = _load(loader, corpus, count)
        host = on_a_host(url, Path(folder) / "host", model)
        start = time.perf_counter()
        host.follow()
        words = _until(start, lambda: _state(host, "text") == "up to date")
        complete = _until(start, lambda: _state(host, "vectors") == "up to date")
        there = in_postgres(url, model)
        start = time.perf_counter()
        there.refresh()
        filled = time.perf_counter() - start
        server.execute("VACUUM ANALYZE", database="speed")
        rows = _searches(host, there, corpus, count)
        seen = _seen(loader, host)
        for library in (host, there, loader):
            library.close()
    caption = (
        f"Top 10 of both searches with snippets, beyond embedding the query; {_QUERIES} searches each, on a "
        "host and inside PostgreSQL in turn; the database is on the same machine."
    )
    report.table(SPEED, caption, rows)
    row = [*loaded, words, complete, filled, statistics.median(seen) * 1000, max(seen) * 1000]
    report.table(HOSTS, "Records in PostgreSQL, without embedding.", {f"{count:,}": row})


def _load(loader: Library, corpus: Corpus, count: int) -> _Loaded:
    written = 0.0
    for first in range(0, count, _BATCH):
        records = list(corpus.records(first, min(_BATCH, count - first)))
        start = time.perf_counter()
        loader.write([(None, records)])
        written += time.perf_counter() - start
    done: list[tuple[int, float]] = []
    loader.refresh(lambda number, total: done.append((number, time.perf_counter())))
    # The first of three parts of the work stores the vectors.
    ends = next(moment for number, moment in done if number >= count)
    return _Loaded(count / written, count / (ends - done[0][1]))


def _state(host: Library, index: str) -> str:
    return host.figures().states[index]


def _until(start: float, holds: Callable[[], bool]) -> float:
    while not holds():
        time.sleep(0.25)
    return time.perf_counter() - start


def _searches(host: Library, there: Library, corpus: Corpus, count: int) -> dict[str, list[float]]:
    kinds: dict[str, Callable[[], Filters | None]] = {
        "type, tag and dates (1 in 70 passes)": corpus.filters,
        "type (1 in 5)": lambda: Filters(type="person"),
        "namespace alone (9 in 10)": lambda: None,
    }
    rows = {}
    for kind, make in kinds.items():
        walls: dict[Library, list[float]] = {host: [], there: []}
        for _ in range(_QUERIES):
            query, filters = corpus.query(), make()
            for library, spent in walls.items():
                # The same query runs before, so that its vector is cached.
                library.search(query, access=USER, namespace="public", limit=1)
                start = time.perf_counter()
                library.search(query, access=USER, namespace="studio", filters=filters, limit=10)
                spent.append(time.perf_counter() - start)
        figures = [float(each) * 1000 for spent in walls.values() for each in np.quantile(spent, [0.5, 0.99])]
        rows[f"{count:,}: {kind}"] = [*figures, figures[2] / figures[0]]
    return rows


def _seen(loader: Library, host: Library) -> list[float]:
    """How long after a write a search on another host finds the record."""
    seen = []
    for number in range(_CHANGES):
        word = f"novelty{number}x"
        loader.write([(None, [Record(f"doc:{word}", f"{word} t1", f"The {word} is new.")])])
        start = time.perf_counter()
        while not any(each.record.id == f"doc:{word}" for each in _words(host, word)):
            time.sleep(0.002)
        seen.append(time.perf_counter() - start)
    return seen


def _words(library: Library, word: str) -> Sequence[Evidence]:
    return library.search(f"{word} t1", access=USER, limit=5, snippets=False)
