"""The call that every implementation answers: parameters, arguments, and search results."""

from __future__ import annotations

import json
import os
from importlib import resources
from typing import Any

TOOL = "kb_search"

PARAMETERS: dict[str, Any] = json.loads(
    resources.files("jackfield_tool_kb_search").joinpath("schema.json").read_text("utf-8")
)["parameters"]

ARGUMENTS = (
    '{"query":"who founded the studio in Lisbon","filters":{"type":"person","tags":["founder"]},"top_k":5}'
)

WRONG = {
    "a number out of range": '{"query":"who","top_k":11}',
    "a text for a number": '{"query":"who","top_k":"7"}',
    "a value that is not in the list": '{"query":"who","namespace":"elsewhere"}',
    "an unknown argument": '{"query":"who","limit":7}',
    "too many tags": '{"query":"who","filters":{"tags":["a","b","c","d","e","f"]}}',
    "a day that never was": '{"query":"who","filters":{"date_range":{"start":"2026-02-30T00:00:00Z"}}}',
}
"""Invalid arguments, by their fault."""

FIVE, ONE, EMPTY = "five", "one", "empty"
"""The sizes of the result: five long items, one short item, or none."""

SIZE_VARIABLE = "JACKFIELD_BENCH_RESULT"
"""The environment variable that selects the size; five items without it."""

_SNIPPET = 280
"""The approximate length of the passages of the knowledge base."""


def _items(size: str) -> list[dict[str, Any]]:
    """Return what the search finds."""
    if size == EMPTY:
        return []
    if size == ONE:
        return [{**_sample()[0], "snippet": "Founded the studio in Lisbon."}]
    return _sample()


def _sample() -> list[dict[str, Any]]:
    """Return five results in the form of `kb_search`, with texts of the sample knowledge base."""
    handbook = resources.files("jackfield_kb.sample").joinpath("halden_street", "handbook")
    pages = sorted(page.read_text("utf-8") for page in handbook.iterdir() if page.name.endswith(".md"))
    return [
        {
            "id": f"person:{number}",
            "type": "person",
            "title": f"Person {number}",
            "snippet": " ".join(page.rpartition("---")[2].split())[:_SNIPPET] + "…",
            "score": round(0.917 - number / 7, 3),
            "source_type": "document",
            "last_updated": "2026-10-05T00:00:00Z",
            "url": None,
            "metadata": {"role": "founder"},
        }
        for number, page in enumerate(pages[:5])
    ]


_ITEMS = _items(os.environ.get(SIZE_VARIABLE, FIVE))

# No message about wrong arguments contains this.
_EVIDENCE = '"person:0"' if _ITEMS else '"results"'


def evidence(top_k: int) -> dict[str, Any]:
    """Return the search results without delay, so that only the overhead is measured."""
    return {"results": _ITEMS[:top_k]}


def found(result: str) -> bool:
    """Return whether a result holds what the search finds, in any envelope."""
    return _EVIDENCE in result
