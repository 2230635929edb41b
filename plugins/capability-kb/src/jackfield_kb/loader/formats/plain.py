"""Plain text: the whole file is the text."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield_kb.loader.documents import Document, UnreadableFileError
from jackfield_kb.loader.drafts import RecordDraft
from jackfield_kb.loader.slugs import slug, spoken


def read(document: Document) -> Iterator[RecordDraft]:
    """One record; its title is the name of the file."""
    text = document.text().strip()
    if not text:
        raise UnreadableFileError("it holds nothing but white space", "write something into it, or delete it")
    yield RecordDraft(title=spoken(slug(document.path.stem)), text=text)
