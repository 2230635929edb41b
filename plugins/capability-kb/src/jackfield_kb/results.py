"""From what was found to what is shown: records as they are now, each once, with the passage that fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from jackfield_capability_types.knowledge import Evidence, Record

from jackfield_kb.access import Access
from jackfield_kb.passages import ordinal_of, split
from jackfield_kb.search import Found
from jackfield_kb.snippets import snippet
from jackfield_kb.truth import reading
from jackfield_kb.truth.database import Database

_AT_ONCE = 200
"""Records that are fetched at once."""


def evidence(
    database: Database,
    found: Iterable[Found],
    access: Access,
    limit: int,
    snippets_for: Mapping[str, float] | None,
) -> list[Evidence]:
    """The best of what was found; with snippets when the weights of the query's words are given."""
    shown: list[Evidence] = []
    texts: set[tuple[str, str]] = set()
    for each, record in _records(database, found, limit):
        # The indexes let through only what this user may see; a record may have changed hands since.
        if not access.allows(record):
            continue
        # The same under another id tells nothing new.
        text = (record.title.strip().casefold(), record.text.strip())
        if text in texts:
            continue
        texts.add(text)
        piece = None if snippets_for is None else snippet(_passage(record, each.key), snippets_for)
        shown.append(Evidence(record, each.score, piece))
        if len(shown) == limit:
            break
    return shown


def _records(database: Database, found: Iterable[Found], limit: int) -> Iterator[tuple[Found, Record]]:
    """What was found with its record, as far as it is still there; a few at a time."""
    remaining = iter(found)
    while part := list(islice(remaining, min(limit, _AT_ONCE))):
        with database.reading() as db:
            records = reading.by_numbers(db, [each.number for each in part])
        yield from ((each, records[each.number]) for each in part if each.number in records)


def _passage(record: Record, key: int) -> str:
    ordinal = ordinal_of(key)
    for number, part in enumerate(split(record.text)):
        if number == ordinal:
            return record.text[part.start : part.end]
    return record.text
