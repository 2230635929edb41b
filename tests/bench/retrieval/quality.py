"""Quality on judged collections: full text, vectors and both; robustness of weights; calibration."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

from jackfield_capability_types.knowledge import Evidence
from jackfield_kb import embedders, scores
from jackfield_kb.chunks import number_of
from jackfield_kb.library import Access, Library
from jackfield_kb.vectors.index import VectorIndex
from jackfield_kb.vectors.search import VectorReader

from bench.report import Report, RunOptions, Table
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
    "chosen on: weight, pulling, pull",
    {f"held out: {name}": ".3f" for name in judged_collections.NAMES},
)
WORTH = Table("worth", SECTION, "score from", {"right": ".2f", "results": ".0f"})

Search = Callable[[str], list[str]]
GRID = tuple(product((0.5, 0.6, 0.7, 0.8, 1.0), (0, 2, 3), (0.5, 1.0)))
"""Weight of the full text, number of neighbours, and their reach."""

EVERYTHING = Access.everything()


class Chosen(NamedTuple):
    """A point of the grid and its results for each question of each collection."""

    point: tuple[float, int, float]
    values: dict[str, list[float]]


def run(report: Report, asked: RunOptions) -> None:
    if not judged_collections.DATA.is_dir():
        report.note(SECTION, "Quality left out: the judged collections are not here.")
        return
    if embedders.missing():
        report.note(SECTION, "Quality left out: the local embedding model is not installed.")
        return
    with tempfile.TemporaryDirectory() as folder:
        libraries = {
            name: _filled(Path(folder) / name, judged_collections.load(name))
            for name in judged_collections.NAMES
        }
        try:
            _alone_and_together(report, libraries)
            if asked.full:
                _held_out(report, libraries)
                _worth_of_a_score(report, libraries)
        finally:
            for library, _ in libraries.values():
                library.close()


Libraries = dict[str, tuple[Library, Collected]]


def _filled(folder: Path, collected: Collected) -> tuple[Library, Collected]:
    library = Library(folder, embedder=embedders.LocalModel())
    library.write([(None, collected.records)])
    library.refresh()
    return library, collected


def _values(search: Search, questions: list[Question]) -> list[float]:
    return [judged_collections.ndcg(search(each.text), each.right) for each in questions]


def _ids(found: list[Evidence]) -> list[str]:
    return [each.record.id for each in found]


def _both(library: Library) -> Search:
    return lambda text: _ids(library.search(text, access=EVERYTHING, limit=10, snippets=False))


def _words(library: Library) -> Iterator[Search]:
    alone = Library(library.folder, embedder=None, notice=lambda line: None)
    yield _both(alone)
    alone.close()


def _meaning(library: Library) -> Search:
    model = embedders.LocalModel()
    view = VectorReader(VectorIndex(library.folder / "vectors"), model.model).view()
    assert view is not None
    # Numbers are in the order of writing.
    ids = dict(enumerate((record.id for record in judged_collections.load(library.folder.name).records), 1))

    def search(text: str) -> list[str]:
        near = view.search(model.embed([text])[0], None, 60)
        return list(dict.fromkeys(ids[number_of(key)] for key in view.keys(near.rows)))[:10]

    return search


def _alone_and_together(report: Report, libraries: Libraries) -> None:
    rows = {}
    for library, collected in libraries.values():
        figures = [statistics.mean(_values(search, collected.questions)) for search in _words(library)]
        figures += [
            statistics.mean(_values(search, collected.questions))
            for search in (_meaning(library), _both(library))
        ]
        rows[collected.title] = figures
    sizes = [
        f"{collected.title} has {len(collected.records):,} records and {len(collected.questions)} questions"
        for _, collected in libraries.values()
    ]
    report.table(QUALITY, f"nDCG@10; {', '.join(sizes)}.", rows)


@contextmanager
def _with(point: tuple[float, int, float]) -> Iterator[None]:
    kept = scores.WEIGHT, scores.PULLING, scores.PULL
    scores.WEIGHT, scores.PULLING, scores.PULL = point
    yield
    scores.WEIGHT, scores.PULLING, scores.PULL = kept


def _held_out(report: Report, libraries: Libraries) -> None:
    """Choose the weights on some questions and apply them to the others."""
    tried = []
    for point in GRID:
        with _with(point):
            values = {
                name: _values(_both(library), collected.questions)
                for name, (library, collected) in libraries.items()
            }
        tried.append(Chosen(point, values))
    halves = {name: [each.half for each in collected.questions] for name, (_, collected) in libraries.items()}
    rows: dict[str, list[float | None]] = {}
    # Vectors alone on the same questions: one half is easier than the other.
    alone = Chosen(
        (0, 0, 0),
        {name: _values(_meaning(library), kept.questions) for name, (library, kept) in libraries.items()},
    )
    for half in (0, 1):
        best = max(
            tried, key=lambda each: sum(_mean(each, name, halves, half) for name in judged_collections.NAMES)
        )
        for what, each in ((_named(best), best), ("meaning alone", alone)):
            held = [_mean(each, name, halves, 1 - half) for name in judged_collections.NAMES]
            rows[f"half {half + 1} of both: {what}"] = [*held]
    for learnt, other in (judged_collections.NAMES, judged_collections.NAMES[::-1]):
        best = max(tried, key=lambda each: statistics.mean(each.values[learnt]))
        figure = statistics.mean(best.values[other])
        rows[f"{learnt}: {_named(best)}"] = [
            figure if name == other else None for name in judged_collections.NAMES
        ]
    inuse = f"{scores.WEIGHT}, {scores.PULLING}, {scores.PULL}"
    caption = f"nDCG@10 with weights chosen on some questions and measured on others; in use: {inuse}."
    report.table(HELD_OUT, caption, rows)


def _mean(each: Chosen, name: str, halves: dict[str, list[int]], half: int) -> float:
    return statistics.mean(
        value for value, which in zip(each.values[name], halves[name], strict=True) if which == half
    )


def _named(each: Chosen) -> str:
    return ", ".join(f"{part:g}" for part in each.point)


def _worth_of_a_score(report: Report, libraries: Libraries) -> None:
    """Return the share of right results by score; questions of the other collection have no answer."""
    results: list[tuple[float, bool]] = []
    for name, (library, _) in libraries.items():
        for asked, (_, collected) in libraries.items():
            for question in collected.questions:
                found = library.search(question.text, access=EVERYTHING, limit=10, snippets=False)
                right = question.right if asked == name else frozenset()
                results += [(each.score, each.record.id in right) for each in found]
    rows = {}
    for tenth in range(10):
        inside = [right for score, right in results if tenth / 10 <= score < (tenth + 1) / 10]
        if inside:
            rows[f"{tenth / 10:.1f}"] = (statistics.mean(inside), len(inside))
    report.table(WORTH, "What a score is worth: of the results with it, how many are right.", rows)
