"""Plain text: the whole file is the text."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield_kb.loader.documents import Document, UnreadableFileError
from jackfield_kb.loader.drafts import RecordDraft
from jackfield_kb.loader.slugs import slug, spoken


def read(document: Document) -> Iterator[RecordDraft]:
    """Yield one record; its title is the file name."""
    text = document.text().strip()
    if not text:
        raise UnreadableFileError("it contains only white space", "add content, or delete it")
    yield RecordDraft(title=spoken(slug(document.path.stem)), text=text)
