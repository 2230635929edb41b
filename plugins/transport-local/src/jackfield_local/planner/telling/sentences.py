"""Sentences: where they end, and which of them answer a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from jackfield_embeddings import Vectors

_END = re.compile(r"(?<=[.!?])\s+(?=[A-ZÀ-Þ0-9\"“*#-])|\n+")
_MARKS = re.compile(r"[*_`#>]+|\[([^\]]*)\]\([^)]*\)|^\s*[-+]\s+", re.MULTILINE)
MOST_SENTENCES = 60


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text."""
    return [part.strip() for part in _END.split(text) if part.strip()]


def plain(text: str) -> str:
    """A text without the marks of Markdown."""
    return " ".join(_MARKS.sub(lambda match: match.group(1) or "", text).split())


def answering(question: str, text: str, most: int, embed: Callable[[Sequence[str]], Vectors]) -> str:
    """The sentences that come nearest to a question, in the order in which they stand."""
    found = [plain(each) for each in sentences(text)[:MOST_SENTENCES]]
    found = [each for each in found if len(each) > 2]
    if len(found) <= most or not question:
        return _joined(found[:most])
    near = embed(found) @ embed([question])[0]
    best = sorted(sorted(range(len(found)), key=lambda index: -near[index])[:most])
    return _joined([found[index] for index in best])


def _joined(found: Sequence[str]) -> str:
    return " ".join(each if each.endswith((".", "!", "?", "…", ":")) else f"{each}." for each in found)
