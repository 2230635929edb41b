"""Word documents: paragraphs and tables in their order."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import UTC
from typing import TYPE_CHECKING, Any

from jackfield_kb.loader.documents import Document, UnreadableFileError
from jackfield_kb.loader.drafts import RecordDraft
from jackfield_kb.loader.slugs import slug, spoken

if TYPE_CHECKING:
    from docx.table import Table

_MOST_UNPACKED = 256_000_000
_MOST_XML = 64_000_000
"""The size limit of the XML, which needs many times that in memory; 1,000 pages have about a third of it."""

_MOST_ENTRIES = 10_000


def read(document: Document) -> Iterator[RecordDraft]:
    """Yield one record; its title is the first heading, the title property or the file name."""
    _refuse_bombs(document)
    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from docx.table import Table

    try:
        word = docx.Document(document.data)
    except (PackageNotFoundError, KeyError, ValueError):
        raise _broken() from None
    blocks, heading = [], ""
    for block in word.iter_inner_content():
        if isinstance(block, Table):
            blocks.append(_rows(block))
            continue
        words = block.text.strip()
        if words and not heading and _is_heading(block):
            heading = words
        blocks.append(words)
    text = "\n\n".join(block for block in blocks if block)
    if not text:
        raise UnreadableFileError("it has no text", "add content, or delete it")
    facts = word.core_properties
    changed = facts.modified
    yield RecordDraft(
        title=heading or facts.title.strip() or spoken(slug(document.path.stem)),
        text=text,
        updated=changed and (changed if changed.tzinfo else changed.replace(tzinfo=UTC)),
    )


def _refuse_bombs(document: Document) -> None:
    try:
        with zipfile.ZipFile(document.data) as archive:
            entries = archive.infolist()
    except zipfile.BadZipFile:
        raise _broken() from None
    # An entry is never unpacked beyond its declared size, so the sum of the declared sizes is an upper bound.
    unpacked = sum(entry.file_size for entry in entries)
    xml = sum(entry.file_size for entry in entries if entry.filename.lower().endswith((".xml", ".rels")))
    if len(entries) > _MOST_ENTRIES or unpacked > _MOST_UNPACKED or xml > _MOST_XML:
        raise UnreadableFileError(
            f"it unpacks to {unpacked / 1e6:.0f} MB in {len(entries)} files, {xml / 1e6:.0f} MB of it XML, "
            "like a zip bomb",
            "check its origin; if it is genuine, split it or save it without pictures",
        )
    document.data.seek(0)


def _broken() -> UnreadableFileError:
    return UnreadableFileError(
        "it is not a complete Word document", "open it in a word processor and save it as .docx again"
    )


def _is_heading(paragraph: Any) -> bool:
    style = paragraph.style
    return style is not None and (style.name or "").startswith(("Heading", "Title"))


def _rows(table: Table) -> str:
    """Return one line per row; a cell that spans several columns appears once."""
    lines = []
    for row in table.rows:
        cells = {id(cell._tc): " ".join(cell.text.split()) for cell in row.cells}  # noqa: SLF001
        lines.append(" | ".join(cells.values()))
    return "\n".join(lines).strip()
