"""Quality on judged collections: each search alone, rank fusion and both; held-out values; calibration."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jackfield_capability_types.knowledge import Evidence
from jackfield_kb import embedders, score_fusion
from jackfield_kb.chunks import number_of
from jackfield_kb.library import Access, Library
from jackfield_kb.vectors.index import VectorIndex
from jackfield_kb.vectors.search import VectorReader
from numpy.typing import NDArray

from bench.report import Report, Table
from bench.retrieval import judged_collections
from bench.retrieval.judged_collections import Collected, Question

SECTION = "Search"
QUALITY = Table(
    "quality",
    SECTION,
    "collection",
    {"words alone": ".3f", "meaning alone": ".3f", "both": ".3f"},
)
HELD_OUT = Table(
    "held-out",
    SECTION,
    "left out, and the values chosen on the others",
    {
        "words alone": ".3f",
        "meaning alone": ".3f",
        "rank fusion": ".3f",
        "both": ".3f",
        "gain over the best": "+.3f",
        "from": "+.3f",
        "to": "+.3f",
    },
)
WORTH = Table("worth", SECTION, "score from", {"right": ".2f", "results": ".0f"})

Search = Callable[[str], list[str]]
GRID = tuple(product((0.01, 0.0125, 0.015, 0.0175, 0.02), ((0, 0.0), (2, 0.2), (2, 0.3), (3, 0.2))))
"""Weight of the words; number of records that move the query, and the weight of each."""

EVERYTHING = Access.everything()
CORES = len(os.sched_getaffinity(0))
_DEPTH, _RANK = 100, 60
"""Rank fusion adds 1 / (60 + rank) over the best hundred of each search."""

_RESAMPLES = 2_000
_FOREIGN = 60

Point = tuple[float, tuple[int, float]]


class Measured(NamedTuple):
    """What was measured on a collection; lists of nDCG@10 are in the order of its questions."""

    title: str
    records: int
    questions: int
    values: dict[str, list[float]]
    """nDCG@10 by way to search."""
    tried: dict[Point, list[float]]
    """nDCG@10 by the values of the ranking."""
    results: list[tuple[float, bool]]
    """The score of each result and whether it is right, with questions of other collections too."""


def run(report: Report) -> None:
    if not judged_collections.DATA.is_dir():
        report.note(SECTION, "Quality left out: the judged collections are not available.")
        return
    if embedders.missing():
        report.note(SECTION, "Quality left out: the local embedding model is not installed.")
        return
    measured = _all_measured(judged_collections.NAMES)
    _alone_and_together(report, measured)
    _held_out(report, measured)
    _worth_of_a_score(report, measured)


def _all_measured(names: Sequence[str]) -> list[Measured]:
    """Measure all collections on all cores, because nothing is timed here."""
    with tempfile.TemporaryDirectory() as temporary:
        folders = {name: Path(temporary) / name for name in names}
        for name, folder in folders.items():
            _embed(folder, judged_collections.load(name))
        # In processes of their own, because searches hold the interpreter's lock.
        with ProcessPoolExecutor(min(CORES, len(names)), multiprocessing.get_context("spawn")) as processes:
            # The largest first, so that one core does not have to finish alone.
            waiting = {
                name: processes.submit(_measured, folders[name], name, names)
                for name in sorted(names, key=judged_collections.size, reverse=True)
            }
            return [waiting[name].result() for name in names]


def _embed(folder: Path, collected: Collected) -> None:
    library = Library(folder, embedder=MODEL)
    library.write([(None, collected.records)])
    library.refresh()
    library.close()


class RememberingModel:
    """The local model on all cores; a text is embedded once, because the grid asks every question often."""

    def __init__(self) -> None:
        self._inner = embedders.LocalModel()
        self.model = self._inner.model
        self._vectors: dict[str, NDArray[np.float32]] = {}
        # The model runs outside of the interpreter's lock.
        self._threads = ThreadPoolExecutor(CORES)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        found = self._threads.map(lambda text: self._inner.embed([text])[0], new)
        self._vectors.update(zip(new, found, strict=True))
        return np.array([self._vectors[text] for text in texts], np.float32)


MODEL = RememberingModel()


def _measured(folder: Path, name: str, names: Sequence[str]) -> Measured:
    """Measure an embedded collection; `names` are those of all collections."""
    collected = judged_collections.load(name)
    library = Library(folder, embedder=MODEL)
    by_words = Library(folder, embedder=None, notice=lambda line: None)
    words, meaning, both = _words(by_words), _meaning(library, collected), _both(library)
    ways = {"words": words, "meaning": meaning, "ranks": _ranks(words, meaning), "both": both}
    values = {kind: _values(way, collected.questions) for kind, way in ways.items()}
    by_words.close()
    tried: dict[Point, list[float]] = {}
    for point in GRID:
        with _with(point):
            tried[point] = _values(both, collected.questions)
    results = [result for other in names for result in _results(library, collected, other)]
    library.close()
    sizes = len(collected.records), len(collected.questions)
    return Measured(collected.title, *sizes, values, tried, results)


def _results(library: Library, collected: Collected, name: str) -> Iterator[tuple[float, bool]]:
    """Search for the questions of a collection; those of another one have no right answer here."""
    own = name == collected.name
    questions = collected.questions if own else judged_collections.load(name).questions[:_FOREIGN]
    for question in questions:
        found = library.search(question.text, access=EVERYTHING, limit=10, snippets=False)
        yield from ((one.score, own and one.record.id in question.right) for one in found)


def _values(search: Search, questions: list[Question]) -> list[float]:
    return [judged_collections.ndcg(search(each.text), each.right) for each in questions]


def _ids(found: list[Evidence]) -> list[str]:
    return [each.record.id for each in found]


def _both(library: Library) -> Search:
    return lambda text: _ids(library.search(text, access=EVERYTHING, limit=10, snippets=False))


def _words(library: Library) -> Search:
    return lambda text: _ids(library.search(text, access=EVERYTHING, limit=_DEPTH, snippets=False))


def _meaning(library: Library, collected: Collected) -> Search:
    view = VectorReader(VectorIndex(library.folder / "vectors"), MODEL.model).view()
    assert view is not None
    # Numbers are in the order of writing.
    ids = dict(enumerate((record.id for record in collected.records), 1))

    def search(text: str) -> list[str]:
        near = view.search(MODEL.embed([text])[0], None, _DEPTH)
        return list(dict.fromkeys(ids[number_of(key)] for key in view.keys(near.rows)))

    return search


def _ranks(*searches: Search) -> Search:
    """Reciprocal-rank fusion, the usual way to combine two rankings."""

    def search(text: str) -> list[str]:
        sums: dict[str, float] = {}
        for each in searches:
            for rank, id_ in enumerate(each(text), 1):
                sums[id_] = sums.get(id_, 0.0) + 1 / (_RANK + rank)
        return sorted(sums, key=lambda id_: -sums[id_])

    return search


def _alone_and_together(report: Report, measured: list[Measured]) -> None:
    rows = {
        each.title: [statistics.mean(each.values[way]) for way in ("words", "meaning", "both")]
        for each in measured
    }
    sizes = [f"{each.title} has {each.records:,} records and {each.questions} questions" for each in measured]
    report.table(QUALITY, f"nDCG@10; {', '.join(sizes)}.", rows)


@contextmanager
def _with(point: Point) -> Iterator[None]:
    kept = score_fusion.WEIGHT, score_fusion.PULLING, score_fusion.PULL
    score_fusion.WEIGHT, (score_fusion.PULLING, score_fusion.PULL) = point
    try:
        yield
    finally:
        score_fusion.WEIGHT, score_fusion.PULLING, score_fusion.PULL = kept


def _held_out(report: Report, measured: list[Measured]) -> None:
    """Rank each collection with the values that are best on the others."""
    tried = {point: [each.tried[point] for each in measured] for point in GRID}
    rows: dict[str, list[float]] = {}
    for place, each in enumerate(measured):
        point = max(tried, key=lambda point: _mean_without(tried[point], place))
        values, means = tried[point][place], {}
        for way in ("words", "meaning", "ranks"):
            means[way] = statistics.mean(each.values[way])
        best = each.values[max(means, key=lambda way: means[way])]
        weight, (pulling, pull) = point
        rows[f"{each.title}: {weight:g}, {pulling}, {pull:g}"] = [
            *means.values(),
            statistics.mean(values),
            *gain(np.array(values) - np.array(best)),
        ]
    inuse = f"{score_fusion.WEIGHT:g}, {score_fusion.PULLING}, {score_fusion.PULL:g}"
    caption = (
        "nDCG@10 for each collection, ranked with the weight, number of records and pull that are best on "
        f"the others (in use: {inuse}). The gain is over the best of the first three columns, with the 95 % "
        "interval of a paired bootstrap over the questions."
    )
    report.table(HELD_OUT, caption, rows)


def _mean_without(values: list[list[float]], left_out: int) -> float:
    return statistics.mean(statistics.mean(each) for place, each in enumerate(values) if place != left_out)


def gain(differences: NDArray[np.float64]) -> tuple[float, float, float]:
    """The mean difference, and its 95 % interval."""
    drawn = np.random.default_rng(1).integers(0, len(differences), (_RESAMPLES, len(differences)))
    low, high = np.quantile(differences[drawn].mean(axis=1), [0.025, 0.975])
    return float(differences.mean()), float(low), float(high)


def _worth_of_a_score(report: Report, measured: list[Measured]) -> None:
    """Return the share of right results by score."""
    results = [result for each in measured for result in each.results]
    rows = {}
    for tenth in range(10):
        inside = [right for score, right in results if tenth / 10 <= score < (tenth + 1) / 10]
        if inside:
            rows[f"{tenth / 10:.1f}"] = (statistics.mean(inside), len(inside))
    report.table(WORTH, "The share of results with each score that are correct.", rows)
