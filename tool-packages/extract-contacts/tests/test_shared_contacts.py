"""Precision and recall on the labelled data next to the repository, with minimums."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


def _load_evaluation() -> Any:
    name = "evaluate_contacts"
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("evaluate_contacts.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


evaluate = _load_evaluation()
FOLDER = evaluate.data_folder()
pytestmark = pytest.mark.skipif(FOLDER is None, reason="no folder shared/data/contacts beside the repository")

FLOORS = {
    "e-mails, alone": (0.95, 0.89),
    "e-mails, in a sentence": (0.95, 0.89),
    "linkify-it, emails": (0.99, 0.88),
    "linkify-it, urls": (0.99, 0.97),
    "phones, possible": (0.97, 0.89),
    "phones, valid": (0.97, 0.84),
    "phones, strict": (0.96, 0.87),
    "phones, exact": (0.81, 0.87),
}


@pytest.fixture(scope="module")
def scores() -> dict[str, Any]:
    assert FOLDER is not None
    return {score.task: score for score in evaluate.scores(FOLDER)}


@pytest.mark.parametrize("task", FLOORS)
def test_precision_and_recall_reach_their_minimum(scores: dict[str, Any], task: str) -> None:
    precision, recall = FLOORS[task]
    score = scores[task]
    assert score.precision >= precision, score.false_positives
    assert score.recall >= recall, score.false_negatives


@pytest.mark.parametrize("leniency", ["possible", "valid", "strict", "exact"])
def test_every_reported_number_is_found_by_libphonenumber_alone(
    scores: dict[str, Any], leniency: str
) -> None:
    ours, library = scores[f"phones, {leniency}"], scores[f"phones, {leniency}, libphonenumber alone"]
    assert set(ours.false_positives) <= set(library.false_positives)


def test_numbers_missed_compared_to_libphonenumber_are_dates_and_decimals(scores: dict[str, Any]) -> None:
    ours, library = scores["phones, valid"], scores["phones, valid, libphonenumber alone"]
    assert set(ours.false_negatives) - set(library.false_negatives) == {
        "US 12.1 - 23.71 - 23.45",
        "US 1979-2011 100",
        "US 2012-01-02 08",
    }


def test_few_rejected_addresses_are_matched_in_part() -> None:
    assert FOLDER is not None
    assert len(evaluate.fragments(FOLDER)) <= 45
