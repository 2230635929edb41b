"""What the full-text index keeps of a passage, and how filters read there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import tantivy
from jackfield_capability_types.knowledge import Filters, Record

from jackfield_kb.access import scopes_of
from jackfield_kb.passages import key_of, split
from jackfield_kb.text.analysis import NAME
from jackfield_kb.truth.reading import Numbered
from jackfield_kb.truth.rows import in_microseconds

TITLE, WORDS, KEY, RECORD, SCOPE, TYPE, TAG, UPDATED = (
    "title", "words", "key", "record", "scope", "type", "tag", "updated",
)  # fmt: skip
_EVER = 1 << 62


def schema() -> tantivy.Schema:
    """The fields; nothing is stored, because the truth has it."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(TITLE, tokenizer_name=NAME, index_option="freq")
    builder.add_text_field(WORDS, tokenizer_name=NAME, index_option="freq")
    builder.add_unsigned_field(KEY, indexed=True, fast=True)
    builder.add_unsigned_field(RECORD, indexed=True)
    for name in (SCOPE, TYPE, TAG):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field(UPDATED, fast=True)
    return builder.build()


def documents(item: Numbered) -> Iterator[tantivy.Document]:
    """A document for each passage of a record; the words of title and tags belong to all of them."""
    record = item.record
    heading = "\n".join((record.title, *record.tags))
    for ordinal, passage in enumerate(split(record.text)):
        document = tantivy.Document()
        document.add_text(TITLE, record.title)
        document.add_text(WORDS, f"{heading}\n{record.text[passage.start : passage.end]}")
        document.add_unsigned(KEY, key_of(item.number, ordinal))
        document.add_unsigned(RECORD, item.number)
        _add_facets(document, record)
        yield document


def _add_facets(document: tantivy.Document, record: Record) -> None:
    for scope in scopes_of(record):
        document.add_text(SCOPE, scope)
    document.add_text(TYPE, record.type)
    for tag in record.tags:
        document.add_text(TAG, tag)
    if record.last_updated is not None:
        document.add_integer(UPDATED, in_microseconds(record.last_updated))


def conditions(
    schema: tantivy.Schema, scopes: Iterable[str] | None, filters: Filters | None
) -> list[tantivy.Query]:
    """What has to hold for a passage to be looked at."""
    found = []
    if scopes is not None:
        found.append(_any_of(schema, scopes))
    if filters is None:
        return found
    if filters.type is not None:
        found.append(tantivy.Query.term_query(schema, TYPE, filters.type, "basic"))
    found += [tantivy.Query.term_query(schema, TAG, tag, "basic") for tag in sorted(set(filters.tags))]
    first, last = filters.updated_from, filters.updated_until
    if first is not None or last is not None:
        bounds = (
            -_EVER if first is None else in_microseconds(first),
            _EVER if last is None else in_microseconds(last),
        )
        found.append(tantivy.Query.range_query(schema, UPDATED, tantivy.FieldType.Integer, *bounds))
    return found


def _any_of(schema: tantivy.Schema, scopes: Iterable[str]) -> tantivy.Query:
    each = [tantivy.Query.term_query(schema, SCOPE, scope, "basic") for scope in sorted(scopes)]
    # A set of terms is looked at as a whole, which takes longer than one or two terms.
    if len(each) == 1:
        return each[0]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, scope) for scope in each])
