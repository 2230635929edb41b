"""Plain text: the whole file is the text."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield_kb.loading.documents import Document
from jackfield_kb.loading.drafts import Draft
from jackfield_kb.loading.naming import slug, spoken
from jackfield_kb.loading.problems import UnreadableError


def read(document: Document) -> Iterator[Draft]:
    """One record; its title is the name of the file."""
    text = document.text().strip()
    if not text:
        raise UnreadableError("it holds nothing but white space", "write something into it, or delete it")
    yield Draft(title=spoken(slug(document.path.stem)), text=text)
