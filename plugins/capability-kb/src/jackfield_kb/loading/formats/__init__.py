"""The kinds of files that can be read, by the ending of their names.

A reader takes a document and yields drafts; an entry it cannot read is an `UnreadableError` that it yields,
so that the others are still read, and raises when nothing more can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from jackfield_kb.loading.documents import Document
from jackfield_kb.loading.drafts import Draft
from jackfield_kb.loading.problems import UnreadableError

Entry: TypeAlias = Draft | UnreadableError
Read = Callable[[Document], Iterator[Entry]]

_WHOLE = 64_000_000
"""Bytes of a file that is read in one piece: a long book with pictures has about a tenth of it."""

_STREAMED = 4_000_000_000


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file."""

    name: str
    suffixes: tuple[str, ...]
    limit: int = _WHOLE
    many: bool = False
    """Whether one file holds many records."""

    def reader(self) -> Read:
        """What reads it; the parser is imported only now."""
        read: Read = import_module(f"{__name__}.{self.name}").read
        return read


FORMATS = (
    Format("markdown", (".md", ".markdown")),
    Format("plain", (".txt", ".text")),
    Format("html", (".html", ".htm", ".xhtml")),
    Format("pdf", (".pdf",)),
    Format("docx", (".docx",)),
    Format("table", (".csv", ".tsv"), _STREAMED, many=True),
    Format("json_lines", (".jsonl", ".ndjson"), _STREAMED, many=True),
    Format("vcard", (".vcf", ".vcard"), many=True),
)

_BY_SUFFIX = {suffix: each for each in FORMATS for suffix in each.suffixes}

SUFFIXES = tuple(_BY_SUFFIX)
"""Every ending that is read."""


def format_of(path: Path) -> Format | None:
    """The kind of a file by its name."""
    return _BY_SUFFIX.get(path.suffix.lower())
