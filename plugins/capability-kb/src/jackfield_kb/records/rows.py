"""Records as database rows: validation, conversion and a digest that shows changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from jackfield_capability_types.knowledge import NAMESPACES, TYPES, Record

from jackfield_kb.access import PERSONAL
from jackfield_kb.errors import ClaimedTwiceError, RecordError
from jackfield_kb.records.interface import NOWHERE, SourceRecords

COLUMNS = "id, type, namespace, owner, title, text, tags, url, source_type, last_updated, metadata"
MOST_TEXT = 20_000_000
"""The maximum number of characters of a record's text; a long book has about one million."""

_MOST_ID, _MOST_TITLE, _MOST_TAGS, _MOST_TAG = 500, 2_000, 200, 200


def to_row(record: Record) -> tuple[Any, ...]:
    """Return the values for `COLUMNS`; raises `RecordError` for an invalid record."""
    _check(record)
    moment = record.last_updated
    try:
        row = (
            record.id,
            record.type,
            record.namespace,
            record.owner if record.namespace == PERSONAL else None,
            record.title,
            record.text,
            json.dumps(list(dict.fromkeys(record.tags)), ensure_ascii=False),
            record.url,
            record.source_type,
            None if moment is None else (moment if moment.tzinfo else in_utc(moment)).isoformat(),
            json.dumps(dict(record.metadata), ensure_ascii=False, sort_keys=True),
        )
        "\0".join(value for value in row if value is not None).encode()
    except (TypeError, ValueError) as error:
        raise RecordError(f"the record {record.id!r} is invalid: {error}") from None
    return row


def _check(record: Record) -> None:
    wrong = None
    if not record.id or len(record.id) > _MOST_ID or any(c.isspace() for c in record.id):
        wrong = f"its id must have 1 to {_MOST_ID} characters without spaces, such as `person:ada`"
    elif record.type not in TYPES:
        wrong = f"its type {record.type!r} is not one of {', '.join(TYPES)}"
    elif record.namespace not in NAMESPACES:
        wrong = f"its namespace {record.namespace!r} is not one of {', '.join(NAMESPACES)}"
    elif record.namespace == PERSONAL and not record.owner:
        wrong = "it is personal but has no owner, so no user could see it"
    elif len(record.title) > _MOST_TITLE:
        wrong = f"its title is longer than {_MOST_TITLE} characters"
    elif len(record.text) > MOST_TEXT:
        wrong = f"its text is longer than {MOST_TEXT:,} characters; split it into several records"
    elif len(record.tags) > _MOST_TAGS or any(not 0 < len(tag) <= _MOST_TAG for tag in record.tags):
        wrong = f"it can have at most {_MOST_TAGS} tags of 1 to {_MOST_TAG} characters each"
    if wrong:
        raise RecordError(f"the record {record.id[:_MOST_ID]!r} is invalid: {wrong}")


def digest(row: Sequence[Any]) -> bytes:
    """Return a hash that changes whenever the record does."""
    return hashlib.blake2b(json.dumps(row, ensure_ascii=False).encode(), digest_size=16).digest()


def from_row(row: Sequence[Any]) -> Record:
    """Return the record from a row of `COLUMNS`."""
    id_, type_, namespace, owner, title, text, tags, url, source_type, last_updated, metadata = row
    return Record(
        id=id_,
        title=title,
        text=text,
        type=type_,
        namespace=namespace,
        owner=owner,
        tags=tuple(json.loads(tags)),
        url=url,
        source_type=source_type,
        last_updated=None if last_updated is None else datetime.fromisoformat(last_updated),
        metadata=json.loads(metadata),
    )


def in_utc(moment: datetime) -> datetime:
    """Convert a time to UTC; a time without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def in_microseconds(moment: datetime) -> int:
    """Return a time as microseconds since 1970, as the indexes store it."""
    apart = in_utc(moment) - datetime(1970, 1, 1, tzinfo=UTC)
    return (apart.days * 86_400 + apart.seconds) * 1_000_000 + apart.microseconds


def refuse_doubles(put: Sequence[SourceRecords]) -> None:
    """Raise `ClaimedTwiceError` if two sources of one write have a record with the same id."""
    owners: dict[str, str] = {}
    for source, records in put:
        name = NOWHERE if source is None else source.uri
        for record in records:
            if record.id in owners:
                raise ClaimedTwiceError(record.id, owners[record.id], name)
            owners[record.id] = name
