"""The full-text index (tantivy) on disk: one writer at a time, any number of readers in any process.

`current.json` contains the folder in use, the position that it covers, and a checksum of each of its files.
Tantivy never changes a file once it is written, so a file that does not match its checksum is damaged. A
rebuild fills a new folder and switches over when it is complete; until then readers use the old one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import tantivy
from jackfield_capability_types.knowledge import Filters, Record

from jackfield_kb.access import scopes_of
from jackfield_kb.chunks import key_of, split
from jackfield_kb.errors import DamagedIndexError
from jackfield_kb.index_files import checksum, read_json
from jackfield_kb.index_worker import Generations, incomplete
from jackfield_kb.records.interface import Numbered, Position
from jackfield_kb.records.rows import in_microseconds

TITLE, WORDS, KEY, RECORD, SCOPE, TYPE, TAG, UPDATED = (
    "title", "words", "key", "record", "scope", "type", "tag", "updated",
)  # fmt: skip
_EVER = 1 << 62


def schema() -> tantivy.Schema:
    """Return the schema; it stores no fields, because the database has the records."""
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
    """Yield a document for each chunk of a record, with the record's title and tags."""
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
    """Return the filter conditions of a search."""
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
    # A term set query is slower than one or two term queries.
    if len(each) == 1:
        return each[0]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, scope) for scope in each])


NAME = "jackfield_english"
"""The tokenizer's name in the index; it has to change whenever the text analysis changes."""

_LONGEST_WORD = 60
_BEGINNING = 3
_WORD = re.compile(r"\w+")


class Word(NamedTuple):
    """The stem of a word, and its position in the text."""

    stem: str
    start: int
    end: int


@cache
def analyzer() -> tantivy.TextAnalyzer:
    """Return the analyzer for documents and queries."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(_LONGEST_WORD))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
        .filter(tantivy.Filter.stopword("english"))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


def stems(text: str) -> list[str]:
    """Return the stems of a text's words."""
    return analyzer().analyze(text)


def places(text: str, wanted: Collection[str]) -> list[Word]:
    """Return the words of a text that have one of the wanted stems, in order."""
    if not wanted:
        return []
    # Analysing every word takes longer than the search, so only words with a matching prefix are analysed.
    text = (text if text.isascii() else _folded(text)).lower()
    found = []
    for beginning in {stem[:_BEGINNING] for stem in wanted}:
        for match in _words_beginning(beginning, text):
            found += [Word(stem, *match.span()) for stem in _stems_of_word(match.group()) if stem in wanted]
    return sorted(found, key=attrgetter("start"))


def _words_beginning(beginning: str, text: str) -> Iterator[re.Match[str]]:
    """Yield the words with this prefix."""
    start = text.find(beginning)
    while start >= 0:
        before = text[start - 1 : start]
        if not (before.isalnum() or before == "_"):
            word = _WORD.match(text, start)
            if word is not None and word.group()[:_BEGINNING] == beginning:
                yield word
        start = text.find(beginning, start + 1)


@lru_cache(4_096)
def _stems_of_word(word: str) -> tuple[str, ...]:
    return tuple(stems(word))


def _folded(text: str) -> str:
    """Remove accents without changing positions."""
    return "".join(c if c.isascii() else unicodedata.normalize("NFKD", c)[0].lower()[:1] for c in text)


def storable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if unicodedata.category(c) == "Cs" else c for c in text)
    return text


_WRITER_BYTES = 64_000_000
_REMOVED_AT_ONCE = 10_000


class TextIndexState(NamedTuple):
    """The content of `current.json`."""

    folder: str
    position: Position
    seals: dict[str, int]
    complete: bool = True
    """False until the index has covered all records for the first time."""


class TextIndex(Generations):
    """The folder `text` of a library."""

    format = 2

    def state(self) -> TextIndexState | None:
        """Read the index's state; None without an index; raises `DamagedIndexError` if it is unreadable."""
        said = self._said()
        if said is None:
            return None
        try:
            return TextIndexState(
                str(said["folder"]),
                Position(*said["position"]),
                dict(said["seals"]),
                bool(said.get("complete", True)),
            )
        except (KeyError, TypeError) as error:
            raise incomplete(error) from None

    def open(self, state: TextIndexState, *, check: bool) -> tantivy.Index:
        """Open the index of a state; `check` compares every file with its checksum."""
        folder = self.folder / state.folder
        if check:
            _check(folder, state.seals)
        with damage_reported():
            index = tantivy.Index.open(str(folder))
        return _prepared(index)

    def start_rebuild(self) -> TextIndexState:
        """Create an empty folder for a rebuild; readers use it once its state is recorded."""
        name = self._new_generation()
        with damage_reported():
            tantivy.Index(schema(), path=str(self.folder / name))
        return TextIndexState(name, Position(), {}, complete=False)

    def record(self, state: TextIndexState, position: Position) -> TextIndexState:
        """Publish the committed state."""
        seals = _sealed(self.folder / state.folder, state.seals)
        recorded = state._replace(position=position, seals=seals)
        self._say(recorded._asdict())
        return recorded

    def tidy(self, state: TextIndexState) -> None:
        """Remove folders that are no longer used."""
        self._keep_only(state.folder)


def add(writer: tantivy.IndexWriter, items: Iterable[Numbered]) -> None:
    """Add the chunks of records."""
    for item in items:
        for document in documents(item):
            writer.add_document(document)


def remove(writer: tantivy.IndexWriter, numbers: Sequence[int]) -> None:
    """Remove the chunks of records."""
    # Uses a query, because `delete_documents_by_term` does not match unsigned fields.
    for start in range(0, len(numbers), _REMOVED_AT_ONCE):
        part = numbers[start : start + _REMOVED_AT_ONCE]
        writer.delete_documents_by_query(tantivy.Query.term_set_query(schema(), RECORD, part))


def remove_after(writer: tantivy.IndexWriter, number: int) -> None:
    """Remove records with higher numbers: an interrupted run added them, and this run adds them again."""
    after = tantivy.Query.range_query(
        schema(), RECORD, tantivy.FieldType.Unsigned, number, _EVER, include_lower=False
    )
    writer.delete_documents_by_query(after)


def writer(index: tantivy.Index) -> tantivy.IndexWriter:
    """Return the writer; tantivy's lock rejects a second one."""
    with damage_reported():
        return index.writer(_WRITER_BYTES, 1)


@contextmanager
def damage_reported() -> Iterator[None]:
    """Turn tantivy's exceptions and panics into `DamagedIndexError`."""
    try:
        yield
    except BaseException as error:
        # A panic is not an Exception, and its class cannot be imported.
        if isinstance(error, ValueError | OSError | RuntimeError) or type(error).__name__ == "PanicException":
            first = str(error).strip().splitlines() or [type(error).__name__]
            raise DamagedIndexError(first[0]) from error
        raise


def _prepared(index: tantivy.Index) -> tantivy.Index:
    index.register_tokenizer(NAME, analyzer())
    # Readers reload when `current.json` changes, so no watcher thread is needed.
    index.config_reader("manual")
    return index


def _sealed(folder: Path, known: dict[str, int]) -> dict[str, int]:
    """Return the checksums of all complete files."""
    # Tantivy merges in the background: unlisted files are incomplete, and listed files may vanish.
    listed = {each["segment_id"].replace("-", "") for each in read_json(folder / "meta.json")["segments"]}
    seals = {}
    for path in folder.iterdir():
        if path.name.partition(".")[0] in listed:
            with suppress(FileNotFoundError):
                seals[path.name] = known.get(path.name) or checksum(path)
    return seals


def _check(folder: Path, seals: dict[str, int]) -> None:
    for name, seal in seals.items():
        try:
            # Tantivy merged a missing file into another, or else reports it when it opens the index.
            if checksum(folder / name) != seal:
                raise DamagedIndexError(f"{name} does not match its checksum")
        except FileNotFoundError:
            continue
