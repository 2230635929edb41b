"""Minimum quality: on judged questions, full text and vectors together beat either alone."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest
from jackfield_capability_types.knowledge import Record
from jackfield_kb.embedders import LocalModel, missing
from jackfield_kb.library import Library
from kb_fixtures import EVERYTHING, ids

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "retrieval" / "stackfaq"
THREADS = tuple(f"t{number}" for number in range(16))

pytestmark = [
    pytest.mark.skipif(not DATA.is_dir(), reason="the judged questions are not here"),
    pytest.mark.skipif(bool(missing()), reason="the local model is not installed"),
]


def lines(name: str) -> list[dict[str, str]]:
    found = [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]
    return [each for each in found if each["_id"].partition("q")[0].partition("a")[0] in THREADS]


def ndcg(found: Sequence[str], thread: str, right: int) -> float:
    gains = [1 / math.log2(place + 2) for place in range(10)]
    hits = [each.startswith(f"doc:{thread}a") for each in found]
    return sum(gain for gain, hit in zip(gains, hits, strict=False) if hit) / sum(gains[:right])


def quality(library: Library) -> tuple[float, list[tuple[float, bool]]]:
    values, scores = [], []
    answers = [each["_id"].partition("a")[0] for each in lines("corpus.jsonl")]
    for question in lines("queries.jsonl"):
        thread = question["_id"].partition("q")[0]
        found = library.search(question["text"], access=EVERYTHING, limit=10)
        values.append(ndcg(ids(found), thread, min(10, answers.count(thread))))
        scores += [(each.score, each.record.id.startswith(f"doc:{thread}a")) for each in found]
    return statistics.mean(values), scores


def test_combined_search_is_at_least_as_good_as_full_text(folder: Path) -> None:
    records = [Record(f"doc:{each['_id']}", each["title"], each["text"]) for each in lines("corpus.jsonl")]
    both = Library(folder, embedder=LocalModel(), notice=lambda line: None)
    both.write([(None, records)])
    both.refresh()
    words = Library(folder, embedder=None, notice=lambda line: None)
    together, scores = quality(both)
    alone, _ = quality(words)
    both.close()
    words.close()
    assert together > 0.97
    assert alone > 0.75
    shares = [
        statistics.mean(right for score, right in scores if low <= score < high)
        for low, high in ((0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.01))
    ]
    assert shares == sorted(shares), "a higher score is more often right"
    assert shares[0] < 0.2
    assert shares[-1] > 0.8
