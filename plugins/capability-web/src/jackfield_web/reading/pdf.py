"""PDF: the text of its first pages."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING

from jackfield_web.reading.texts import LONGEST, Text, UnreadableError

if TYPE_CHECKING:
    from pypdf import PageObject

MOST_PAGES = 100


def read_pdf(content: bytes, *, cut: bool) -> Text:
    """The pages in their order; a file that was cut has lost its table of contents and cannot be read."""
    if cut:
        raise UnreadableError("it is a PDF larger than what is read at once")
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    # What pypdf repairs in silence is no news to anybody.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("it is a PDF with a password")
        title = " ".join(str((reader.metadata and reader.metadata.title) or "").split())
        text, whole = _pages(reader.pages)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, NotImplementedError, OSError):
        raise UnreadableError("it is a damaged PDF, or one of an unusual kind") from None
    if not text:
        raise UnreadableError("it is a PDF without text; it seems to be scanned")
    return Text(title[:300], text, [], "application/pdf", whole)


def _pages(pages: Iterable[PageObject]) -> tuple[str, bool]:
    """The texts of the pages, and whether these are all of them."""
    texts: list[str] = []
    size = 0
    for number, page in enumerate(pages):
        if number == MOST_PAGES or size > LONGEST:
            return "\n\n".join(texts), False
        if words := page.extract_text().replace("\0", "").strip():
            texts.append(words)
            size += len(words)
    return "\n\n".join(texts), True
