"""File formats by suffix.

A reader takes a document and yields drafts. For an entry that it cannot read, it yields an
`UnreadableFileError`, so that the other entries are still loaded; it raises one if nothing more can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from jackfield_kb.loader.documents import Document, UnreadableFileError
from jackfield_kb.loader.drafts import RecordDraft

DraftOrError: TypeAlias = RecordDraft | UnreadableFileError
Read = Callable[[Document], Iterator[DraftOrError]]

_WHOLE = 64_000_000
"""The size limit of a file that is read at once; a long book with pictures is about a tenth of this."""

_STREAMED = 4_000_000_000


@dataclass(frozen=True, slots=True)
class FileFormat:
    """One file format."""

    name: str
    suffixes: tuple[str, ...]
    limit: int = _WHOLE
    many: bool = False
    """True if one file contains many records."""

    def reader(self) -> Read:
        """Import and return the reader."""
        read: Read = import_module(f"{__name__}.{self.name}").read
        return read


FORMATS = (
    FileFormat("markdown", (".md", ".markdown")),
    FileFormat("plain", (".txt", ".text")),
    FileFormat("html", (".html", ".htm", ".xhtml")),
    FileFormat("pdf", (".pdf",)),
    FileFormat("docx", (".docx",)),
    FileFormat("table", (".csv", ".tsv"), _STREAMED, many=True),
    FileFormat("json_lines", (".jsonl", ".ndjson"), _STREAMED, many=True),
    FileFormat("vcard", (".vcf", ".vcard"), many=True),
)

_BY_SUFFIX = {suffix: each for each in FORMATS for suffix in each.suffixes}

SUFFIXES = tuple(_BY_SUFFIX)
"""All supported suffixes."""


def format_of(path: Path) -> FileFormat | None:
    """Return the format of a file by its suffix."""
    return _BY_SUFFIX.get(path.suffix.lower())
