"""PDF: the text of the pages in order."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jackfield_kb.loader.documents import Document, UnreadableFileError
from jackfield_kb.loader.drafts import RecordDraft
from jackfield_kb.loader.slugs import in_a_command, slug, spoken

if TYPE_CHECKING:
    from pypdf import PdfReader

_MOST_PAGES = 5_000
_FILE_ENDINGS = (".doc", ".docx", ".pdf", ".indd", ".odt", ".ppt", ".pptx", ".tex", ".txt", ".xls", ".xlsx")


def read(document: Document) -> Iterator[RecordDraft]:
    """Yield one record; its note lists the pages without text."""
    # pypdf logs repairs, which are not useful here.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    reader = _opened(document)
    count = len(reader.pages)
    if count > _MOST_PAGES:
        raise UnreadableFileError(f"it has {count} pages; the limit is {_MOST_PAGES}", "split it")
    pages = [page.extract_text().strip() for page in reader.pages]
    blank = [str(number) for number, text in enumerate(pages, 1) if not text]
    if len(blank) == count:
        raise UnreadableFileError(
            "none of its pages has text; it seems to be scanned",
            "run text recognition first, e.g. `ocrmypdf`",
        )
    yield RecordDraft(
        title=_title(reader) or spoken(slug(document.path.stem)),
        text="\n\n".join(text for text in pages if text).replace("\0", ""),
        updated=_updated(reader),
        metadata={"pages": count},
        note=f"no text on page {_some(blank)} of {count}; scanned pages are not read" if blank else "",
    )


def _some(numbers: list[str]) -> str:
    shown = ", ".join(numbers[:5])
    return shown if len(numbers) <= 5 else f"{shown} and {len(numbers) - 5} more"


def _opened(document: Document) -> PdfReader:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    reader = PdfReader(document.data)
    if reader.is_encrypted:
        try:
            # Many files are encrypted with an empty password, for example to forbid printing.
            opened = bool(reader.decrypt(""))
        except (DependencyError, NotImplementedError, PyPdfError):
            opened = False
        if not opened:
            raise UnreadableFileError(
                "it is encrypted with a password",
                "save an unencrypted copy: "
                f"`qpdf --decrypt --password=... {in_a_command(document.path)} open.pdf`",
            )
    return reader


def _title(reader: PdfReader) -> str:
    """Return the title property, unless it is a file name."""
    title = " ".join(str((reader.metadata and reader.metadata.title) or "").split())
    return "" if title.lower().endswith(_FILE_ENDINGS) or title.lower() == "untitled" else title


def _updated(reader: PdfReader) -> datetime | None:
    facts = reader.metadata
    try:
        moment = facts and (facts.modification_date or facts.creation_date)
    except ValueError:
        return None
    if not moment:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
