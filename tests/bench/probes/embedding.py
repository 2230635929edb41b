"""CPU time of embedding a passage and a question with the local model."""

from __future__ import annotations

import json
import statistics
import time
from importlib import resources

from jackfield_embeddings.minilm import MiniLM, missing

WORDS = 120
"""The length of a passage: a few sentences."""
QUESTION = "Who looks after the printers?"
TIMES = 20


def milliseconds(model: MiniLM, text: str) -> float:
    model.embed([text])
    taken = []
    for _ in range(TIMES):
        began = time.process_time()
        model.embed([text])
        taken.append((time.process_time() - began) * 1000)
    return statistics.median(taken)


def main() -> None:
    if missing():
        print("{}")
        return
    handbook = resources.files("jackfield_kb.sample").joinpath("halden_street", "handbook")
    pages = sorted(page.read_text("utf-8") for page in handbook.iterdir() if page.name.endswith(".md"))
    passage = " ".join(" ".join(page.rpartition("---")[2] for page in pages).split()[:WORDS])
    model = MiniLM()
    found = {f"a passage of {WORDS} words": milliseconds(model, passage)}
    print(json.dumps(found | {"a question": milliseconds(model, QUESTION)}))


if __name__ == "__main__":
    main()
