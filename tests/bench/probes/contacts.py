"""Scores of `extract_contacts`, as in its own tests."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any


def main() -> None:
    evaluate: Any = import_module("evaluate_contacts")
    folder = evaluate.data_folder()
    found: dict[str, float] = {}
    for score in evaluate.scores(folder) if folder else ():
        cases = score.true_positives + len(score.false_negatives) + score.negatives
        figures = {"cases": cases, "precision": score.precision, "recall": score.recall, "F1": score.f1}
        found |= {f"{score.task}|{name}": figure for name, figure in figures.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
