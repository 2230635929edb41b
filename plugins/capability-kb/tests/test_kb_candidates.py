"""Filters stay exact while the index grows, when it is replaced, and when words are looked up first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from jackfield_capability_types.knowledge import Filters, Record
from jackfield_kb import search
from jackfield_kb.library import Access, Library
from jackfield_kb.vectors.search import widened
from kb_fixtures import EVERYTHING, WordModel, filled, ids, opened

TYPES = ("doc", "person", "project")
START = datetime(2026, 1, 1, tzinfo=UTC)
FILTERS = [
    Filters(type=type_, tags=tags, updated_from=first, updated_until=last)
    for type_, tags, first, last in product(
        (None, "person"),
        ((), ("blue",), ("blue", "round")),
        (None, START + timedelta(days=3)),
        (None, START + timedelta(days=8)),
    )
]


def mixed(count: int, first: int = 0, turn: int = 0) -> list[Record]:
    """Return records about one topic, of all types; another `turn` rotates the types."""
    return [
        Record(
            f"doc:{number}",
            f"Lamp {number}",
            f"A lamp like lamp{number % 50} that stands in room{number % 7}, number {number}.",
            type=TYPES[(number + turn) % 3],
            namespace=("studio", "public", "personal")[(number + turn) // 3 % 3],
            owner=("ada", "grace")[number % 2],
            tags=("blue", "round")[: (number + turn) // 5 % 3],
            last_updated=None if number % 11 == 0 else START + timedelta(days=(number + turn) % 13),
        )
        for number in range(first, first + count)
    ]


def passes(record: Record, access: Access, filters: Filters) -> bool:
    moment = record.last_updated
    return (
        access.allows(record)
        and filters.type in (None, record.type)
        and set(filters.tags) <= set(record.tags)
        and (filters.updated_from is None or (moment is not None and moment >= filters.updated_from))
        and (filters.updated_until is None or (moment is not None and moment <= filters.updated_until))
    )


def assert_exact(library: Library, records: list[Record]) -> None:
    for access, filters in product((EVERYTHING, Access.of("ada")), FILTERS):
        found = library.search("lamp room", access=access, filters=filters, limit=len(records))
        expected = {record.id for record in records if passes(record, access, filters)}
        assert set(ids(found)) == expected, (access, filters)


def test_a_reader_filters_newly_indexed_records(tmp_path: Path) -> None:
    writer, reader = opened(tmp_path, WordModel()), opened(tmp_path, WordModel())
    for start in (0, 60, 90, 150):
        writer.write([(None, mixed(60, first=start))])
        writer.delete([f"doc:{start + 1}", f"doc:{start // 2}"])
        writer.refresh()
        assert_exact(reader, list(writer))
    writer.close()
    reader.close()


def test_a_replaced_index_is_not_confused_with_the_old_one(tmp_path: Path) -> None:
    writer, reader = filled(tmp_path, mixed(60), WordModel()), opened(tmp_path, WordModel())
    assert_exact(reader, mixed(60))
    before = {path.name for path in (tmp_path / "vectors").glob("g*")}
    writer.write([(None, mixed(60, turn=1))])
    for _ in range(2):
        writer.rebuild()
    assert {path.name for path in (tmp_path / "vectors").glob("g*")} == before
    assert_exact(reader, mixed(60, turn=1))
    writer.close()
    reader.close()


@pytest.mark.parametrize("limit", [1, 5, 40])
def test_looking_up_the_words_first_gives_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    library = filled(tmp_path, mixed(700), WordModel())

    def found() -> list[list[tuple[str, float]]]:
        return [
            [
                (each.record.id, round(each.score, 5))
                for each in library.search(query, access=access, filters=filters, limit=limit)
            ]
            for query in ("lamp7", "which lamp stands in room3", "number 12")
            for access in (EVERYTHING, Access.of("ada"))
            for filters in FILTERS
        ]

    slowly = found()
    monkeypatch.setattr(search, "_WORTH_IT", 0)
    assert found() == slowly
    library.close()


def test_the_filter_is_applied_first_when_the_best_matches_do_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_WORTH_IT", 0)
    model = WordModel()
    kestrel, *others = model.embed(["kestrel", *(f"filler{number}" for number in range(200))])
    # Far away by its vector, and behind seven hundred others by its words.
    opposite = f"filler{np.argmin(np.array(others) @ kestrel)}"
    hidden = Record("person:hidden", "", f"kestrel {f'{opposite} ' * 40}", type="person")
    people = [Record(f"person:{number}", f"Guest{number}", "", type="person") for number in range(101)]
    birds = [Record(f"doc:{number}", "Kestrel", f"kestrel kestrel bird{number}") for number in range(700)]
    library = filled(tmp_path, [hidden, *people, *birds], model)
    found = library.search("kestrel", access=EVERYTHING, filters=Filters(type="person"))
    assert "person:hidden" in ids(found)
    library.close()


def test_text_matches_without_a_vector_are_filtered_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_WORTH_IT", 0)
    library = filled(tmp_path, mixed(90), WordModel())
    library.write([(None, mixed(60, first=90))])
    by_words = opened(tmp_path)
    by_words.refresh()
    assert_exact(library, mixed(150))
    library.close()
    by_words.close()


def test_integers_are_widened_without_loss() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits.view(np.float16)[np.isfinite(bits.view(np.float16))]
    assert np.array_equal(widened(halves), halves.astype(np.float32))
    assert np.array_equal(np.signbit(widened(halves)), np.signbit(halves))
