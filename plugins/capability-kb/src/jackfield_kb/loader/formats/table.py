"""CSV: one record per row; columns named like record fields are fields, others are metadata."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from jackfield_kb.loader.documents import Document, UnreadableFileError
from jackfield_kb.loader.drafts import FIELDS, RecordDraft
from jackfield_kb.loader.formats import DraftOrError
from jackfield_kb.loader.slugs import slug

_LONGEST_CELL = 10_000_000


def read(document: Document) -> Iterator[DraftOrError]:
    """Yield the rows; an invalid row is reported with its line, and the others are read."""
    csv.field_size_limit(_LONGEST_CELL)
    lines = (line for _, line in document.lines())
    header = next(lines)
    delimiter = max(",;\t|", key=header.count)  # Spreadsheets write semicolons in some locales.
    rows = csv.reader(chain((header,), lines), delimiter=delimiter, strict=True)
    try:
        columns = _columns(next(rows), delimiter)
        start = rows.line_num + 1
        for cells in rows:
            if any(cell.strip() for cell in cells):
                yield _entry(columns, cells, start)
            start = rows.line_num + 1
    except csv.Error as error:
        raise UnreadableFileError(
            f"the row cannot be read ({error})", "check for an unclosed quotation mark", start
        ) from None


def _columns(header: list[str], delimiter: str) -> list[str]:
    names = [name.strip() for name in header]
    columns = [
        slug(name).replace("-", "_") if slug(name).replace("-", "_") in FIELDS else name for name in names
    ]
    if "title" not in columns and "text" not in columns:
        shown = ", ".join(names)[:200]
        raise UnreadableFileError(
            f"it has no column `title` or `text`; its first line, split at {delimiter!r}, is: {shown}",
            "name the columns in the first line, e.g. `title,text,tags`",
            1,
        )
    twice = next((name for name in columns if name and columns.count(name) > 1), None)
    if twice:
        raise UnreadableFileError(f"it has two columns {twice!r}", "rename one of them", 1)
    return columns


def _entry(columns: list[str], cells: list[str], line: int) -> DraftOrError:
    if len(cells) > len(columns):
        return UnreadableFileError(
            f"the row has {len(cells)} cells, but the table has {len(columns)} columns",
            "put a cell that contains the delimiter in quotation marks",
            line,
        )
    said = {name: cell.strip() for name, cell in zip(columns, cells, strict=False) if name and cell.strip()}
    try:
        stated = said | _opened(said)
    except ValueError:
        return UnreadableFileError("its metadata is not a JSON object", 'write it as {"name": "value"}', line)
    if "title" not in said and "text" not in said:
        return UnreadableFileError("the row has neither a title nor a text", "fill in one of them", line)
    described = "\n".join(f"{name}: {cell}" for name, cell in said.items() if name not in FIELDS)
    name = said.get("title") or said["text"][:60]
    return RecordDraft(stated, text=described, line=line, stem=slug(name) or "row")


def _opened(said: dict[str, str]) -> dict[str, Any]:
    if "metadata" not in said:
        return {}
    metadata = json.loads(said["metadata"])
    if not isinstance(metadata, dict):
        raise ValueError("no object")  # noqa: TRY004 - reported like other invalid JSON
    return {"metadata": metadata}
