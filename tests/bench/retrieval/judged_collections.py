"""Collections with judged answers, and the quality of a ranking."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from jackfield_capability_types.knowledge import Record

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "retrieval"
TITLES = {
    "xquad_en": "XQuAD",
    "covidfaq_quebec": "CovidFAQ",
    "stackfaq": "StackFAQ",
    "cranfield": "Cranfield",
    "med": "Medline",
    "cacm": "CACM",
    "scifact": "SciFact",
}
NAMES = tuple(TITLES)
SHORT = NAMES[:4]
"""The quickest to embed: together they have a sixth of the text of all."""


class Question(NamedTuple):
    """A question and its right answers."""

    text: str
    right: frozenset[str]


class Collected(NamedTuple):
    """A collection."""

    name: str
    records: list[Record]
    questions: list[Question]

    @property
    def title(self) -> str:
        return TITLES[self.name]


def size(name: str) -> int:
    """Return the bytes of a collection's records."""
    return (DATA / name / "corpus.jsonl").stat().st_size


def load(name: str) -> Collected:
    """Load a collection from its files."""
    folder = DATA / name
    right: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
        question, answer, score = line.split("\t")
        if float(score) > 0:
            right.setdefault(question, set()).add(f"doc:{answer}")
    records = [
        Record(id=f"doc:{each['_id']}", title=each["title"], text=each["text"])
        for each in _lines(folder / "corpus.jsonl")
    ]
    questions = [
        Question(each["text"], frozenset(right[each["_id"]]))
        for each in _lines(folder / "queries.jsonl")
        if each["_id"] in right
    ]
    return Collected(name, records, questions)


def _lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def ndcg(found: Sequence[str], right: Collection[str], depth: int = 10) -> float:
    """Return the quality of a ranking: 1 if the right answers come first."""
    gained = sum(1 / math.log2(place + 2) for place, each in enumerate(found[:depth]) if each in right)
    return gained / sum(1 / math.log2(place + 2) for place in range(min(depth, len(right))))
