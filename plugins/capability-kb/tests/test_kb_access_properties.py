"""Properties of access control: a search finds exactly the visible records that match the filters."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jackfield_capability_types.knowledge import NAMESPACES, TYPES, Filters, Record
from jackfield_kb.access import SHARED, Access
from jackfield_kb.library import Library
from kb_fixtures import WordModel
from kb_postgres import shared

USERS = ("ann", "ben", "Ann", "personal", "studio", "personal/ann", "*")
TAGS = ("red", "green", "blue sky", "tag:red", "studio")
WORDS = ("harbour", "kiln", "ferry", "lantern")
START = datetime(2026, 1, 1, tzinfo=UTC)

moments = st.integers(0, 6).map(lambda days: START + timedelta(days=days))
tags = st.lists(st.sampled_from(TAGS), max_size=3, unique=True).map(tuple)


@st.composite
def shelves(draw: st.DrawFn) -> list[Record]:
    records = []
    for number in range(draw(st.integers(0, 14))):
        namespace = draw(st.sampled_from(NAMESPACES))
        records.append(
            Record(
                id=f"doc:{number}",
                title=f"Entry {number}",
                text=" ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))),
                type=draw(st.sampled_from(TYPES)),
                namespace=namespace,
                owner=draw(st.sampled_from(USERS)) if namespace == "personal" else None,
                tags=draw(tags),
                last_updated=draw(st.none() | moments),
            )
        )
    return records


filters = st.none() | st.builds(
    Filters,
    type=st.none() | st.sampled_from(TYPES),
    tags=tags,
    updated_from=st.none() | moments,
    updated_until=st.none() | moments,
)
accesses = st.builds(
    Access.of,
    st.none() | st.just("") | st.sampled_from(USERS),
    st.sets(st.sampled_from(SHARED)),
) | st.just(Access.everything())


Asked = tuple[Access, str | None, Filters | None]
asks = st.lists(
    st.tuples(accesses, st.none() | st.sampled_from((*NAMESPACES, "personal/ann")), filters),
    min_size=1,
    max_size=6,
)


@contextmanager
def library_of(records: list[Record], model: WordModel | None) -> Iterator[Library]:
    with tempfile.TemporaryDirectory() as folder:
        library = Library(Path(folder), embedder=model, notice=lambda line: None)
        library.write([(None, records)])
        library.refresh()
        yield library
        library.close()


def fits(record: Record, narrowed: Filters | None) -> bool:
    if narrowed is None:
        return True
    moment = record.last_updated
    dated = narrowed.updated_from is not None or narrowed.updated_until is not None
    return (
        narrowed.type in (None, record.type)
        and set(narrowed.tags) <= set(record.tags)
        and not (dated and moment is None)
        and not (narrowed.updated_from and moment and moment < narrowed.updated_from)
        and not (narrowed.updated_until and moment and moment > narrowed.updated_until)
    )


def visible(record: Record, access: Access) -> bool:
    if access.unlimited:
        return True
    if record.namespace == "personal":
        return bool(access.owner) and record.owner == access.owner
    return record.namespace in access.shared


def check(library: Library, records: list[Record], asked: list[Asked]) -> None:
    """Assert that a search finds exactly the visible records that match the filters."""
    for access, namespace, narrowed in asked:
        # Every record has one of these words, so full-text search finds all visible records.
        found = library.search(
            " ".join(WORDS), access=access, namespace=namespace, filters=narrowed, limit=50
        )
        expected = {
            record.id
            for record in records
            if visible(record, access) and namespace in (None, record.namespace) and fits(record, narrowed)
        }
        assert {each.record.id for each in found} == expected
        assert all(0 <= each.score <= 1 for each in found)
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
        got = library.visible([record.id for record in records], access)
        assert got == [record for record in records if visible(record, access)]


@pytest.mark.parametrize("model", [None, WordModel()], ids=["words alone", "with vectors"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(records=shelves(), asked=asks)
def test_a_search_finds_exactly_the_visible_records(
    model: WordModel | None, records: list[Record], asked: list[Asked]
) -> None:
    with library_of(records, model) as library:
        check(library, records, asked)


@pytest.mark.parametrize("model", [None, WordModel()], ids=["words alone", "with vectors"])
@settings(
    max_examples=10,
    deadline=None,
    # Each example replaces all records.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(records=shelves(), asked=asks)
def test_a_search_in_postgres_finds_exactly_the_visible_records(
    url: str, model: WordModel | None, records: list[Record], asked: list[Asked]
) -> None:
    library = shared(url, None, model)
    library.delete([record.id for record in library])
    library.write([(None, records)])
    library.refresh()
    check(library, records, asked)
    library.close()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(records=shelves(), access=accesses, query=st.text(max_size=60), limit=st.integers(1, 5))
def test_no_query_circumvents_access_control(
    records: list[Record], access: Access, query: str, limit: int
) -> None:
    with library_of(records, WordModel()) as library:
        found = library.search(query, access=access, limit=limit)
        assert len(found) <= limit
        assert all(visible(each.record, access) for each in found)
        assert len({each.record.id for each in found}) == len(found)
