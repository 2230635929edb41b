"""JSON lines: one record per line, as `kb export` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jackfield.strict_json import StrictJsonError, loads

from jackfield_kb.loader.documents import Document, UnreadableFileError
from jackfield_kb.loader.drafts import RecordDraft
from jackfield_kb.loader.formats import DraftOrError
from jackfield_kb.loader.slugs import slug


def read(document: Document) -> Iterator[DraftOrError]:
    """Yield the records; an invalid line is reported with its number, and the others are read."""
    for number, line in document.lines():
        if line.strip():
            yield _entry(line.strip(), number)


def _entry(line: str, number: int) -> DraftOrError:
    try:
        stated = loads(line)
    except StrictJsonError as error:
        return UnreadableFileError(f"the line is not JSON ({_why(error)})", "fix or remove the line", number)
    if not isinstance(stated, dict) or not (stated.get("title") or stated.get("text") or stated.get("id")):
        return UnreadableFileError(
            "the line is not a record",
            'write an object with at least a title or a text: {"title": "..."}',
            number,
        )
    return RecordDraft(stated, line=number, exact=True, stem=_stem(stated))


def _stem(stated: dict[str, Any]) -> str:
    return slug(str(stated.get("title") or stated.get("text") or "")[:80]) or "line"


def _why(error: StrictJsonError) -> str:
    fault = error.faults[0]
    return f"{fault.where.replace('line 1, ', '')}: {fault.message}"
