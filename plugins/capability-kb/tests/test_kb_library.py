"""Writes, reads and change detection of the library."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest
from jackfield_capability_types.knowledge import Filters, Record
from jackfield_kb import embedders
from jackfield_kb.errors import ClaimedTwiceError, LibraryError, RecordError
from jackfield_kb.library import Library, Source
from jackfield_kb.settings import KnowledgeSettings, open_library
from kb_fixtures import EVERYTHING, WordModel, filled, ids, notes, opened

A = Source("file:///a.md", "1", "/docs")
B = Source("file:///b.md", "1", "/docs")


@pytest.fixture(params=["words alone", "with vectors"])
def model(request: pytest.FixtureRequest) -> WordModel | None:
    return WordModel() if request.param == "with vectors" else None


def search(library: Library, query: str, limit: int = 5) -> list[str]:
    return ids(library.search(query, access=EVERYTHING, limit=limit))


def test_an_empty_library_finds_nothing(folder: Path, model: WordModel | None) -> None:
    library = opened(folder, model)
    assert search(library, "anything") == []
    library.refresh()
    assert search(library, "anything") == []
    assert list(library) == []
    assert library.stats().indexes["text"] in ("empty", "up to date")
    library.close()


def test_a_source_is_replaced_as_a_whole(folder: Path, model: WordModel | None) -> None:
    library = opened(folder, model)
    library.write([(A, notes(3)), (B, notes(2, first=10))])
    library.refresh()
    assert search(library, "subject1", limit=1) == ["doc:1"]
    library.write([(A._replace(digest="2"), [Record("doc:1", "Changed", "now about lemons")])])
    library.refresh()
    assert [record.id for record in library] == ["doc:1", "doc:10", "doc:11"]
    assert search(library, "lemons", limit=1) == ["doc:1"]
    assert "doc:0" not in search(library, "subject0 subject2", limit=20)
    assert library.sources("/docs")[A.uri].digest == "2"
    library.write(drop_sources=[A.uri])
    library.refresh()
    assert set(library.sources()) == {B.uri}
    assert library.get(["doc:1", "doc:11", "doc:10"]) == notes(2, first=10)[::-1]
    library.close()


def test_unchanged_texts_are_not_embedded_again(folder: Path) -> None:
    model = WordModel()
    library = opened(folder, model)
    library.write([(A, notes(20))])
    library.refresh()
    assert model.texts == 20
    library.write([(A._replace(digest="2"), [*notes(19), Record("doc:19", "New", "new")])])
    library.refresh()
    assert model.texts == 21
    library.close()


def test_two_sources_cannot_share_an_id(folder: Path) -> None:
    library = opened(folder)
    library.write([(A, notes(2))])
    for put in ([(B, notes(1, first=1))], [(B, notes(1, first=5)), (None, notes(1, first=5))]):
        with pytest.raises(ClaimedTwiceError, match="two sources") as raised:
            library.write([(None, notes(1, first=30)), *put])
        assert B.uri in raised.value.sources
    assert [record.id for record in library] == ["doc:0", "doc:1"], "nothing of a refused write is kept"
    library.close()


def test_a_record_moves_from_one_source_to_another(folder: Path) -> None:
    library = opened(folder)
    library.write([(A, notes(2))])
    library.write([(B, notes(1, first=1)), (A, notes(1))])
    library.write([(B, notes(2))], drop_sources=[A.uri])
    assert set(library.sources()) == {B.uri}
    assert len(list(library)) == 2
    library.close()


def test_many_records_can_be_deleted_and_iterated(folder: Path, model: WordModel | None) -> None:
    library = filled(folder, notes(450), model)
    library.delete(["doc:7", "doc:unknown"])
    assert "doc:7" not in search(library, "subject7", limit=20), "gone before the indexes know"
    library.refresh()
    everything = [record.id for record in library]
    assert everything == sorted(everything)
    assert len(everything) == 449
    library.close()


def test_removed_records_leave_no_trace_in_the_search(folder: Path, model: WordModel | None) -> None:
    # More removed matches than a search considers must not hide one that is still there.
    old = [Record(f"doc:{number}", "Kestrel", "kestrel kestrel") for number in range(300)]
    kept = Record("doc:kept", "Birds", "A long walk past the mill and the weir, and one kestrel.")
    library = filled(folder, [*old, kept], model)
    library.delete([each.id for each in old])
    library.refresh()
    assert search(library, "kestrel") == ["doc:kept"]
    assert library.stats().passages == 1
    library.close()


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (Record("", "t", "x"), "id"),
        (Record("doc: a", "t", "x"), "id"),
        (Record("doc:a", "t", "x", type="novel"), "type"),
        (Record("doc:a", "t", "x", namespace="elsewhere"), "namespace"),
        (Record("doc:a", "t", "x", namespace="personal"), "owner"),
        (Record("doc:a", "t", "x", tags=("",)), "tags"),
        (Record("doc:a", "t" * 3000, "x"), "title"),
        (Record("doc:a", "t", "x" * 20_000_001), "text"),
        (Record("doc:a", "t", "x", metadata={"a": object()}), "JSON"),
        (Record("doc:a", "t", "half a pair: \ud800"), "surrogate"),
    ],
)
def test_an_invalid_record_is_rejected_with_its_id(folder: Path, record: Record, why: str) -> None:
    library = opened(folder)
    with pytest.raises(RecordError, match=why):
        library.write([(None, [*notes(1), record])])
    assert list(library) == []
    library.close()


def test_empty_and_huge_documents_are_accepted(folder: Path, model: WordModel | None) -> None:
    huge = "\n\n".join(f"Paragraph {number} of a very long report." for number in range(12_000))
    needle = "The walrus keeps the marzipan."
    records = [
        Record("doc:nothing", "", ""),
        Record("doc:title", "Pomegranate", ""),
        Record("doc:blank", "Blank", " \n\t\n " * 5_000),
        Record("doc:one-word", "Long word", "x" * 60_000),
        Record("doc:huge", "Report", f"{huge[:300_000]}\n\n{needle}\n\n{huge[300_000:]}"),
    ]
    library = filled(folder, records, model)
    assert search(library, "pomegranate", limit=1) == ["doc:title"]
    (found,) = library.search("walrus marzipan", access=EVERYTHING, limit=1)
    assert found.record == records[-1]
    assert found.snippet is not None
    assert needle in found.snippet
    library.close()


def test_the_same_text_under_two_ids_is_shown_once(folder: Path, model: WordModel | None) -> None:
    twins = [Record(f"doc:{name}", "Kiln", "The kiln is fired on Mondays.") for name in ("a", "b", "c")]
    library = filled(folder, [*twins, *notes(5)], model)
    found = library.search("kiln fired", access=EVERYTHING, limit=5)
    assert sum(each.record.title == "Kiln" for each in found) == 1
    library.close()


def test_a_query_is_read_as_words_and_never_as_syntax(folder: Path, model: WordModel | None) -> None:
    library = filled(folder, notes(5), model)
    for query in ('subject3"', "title:subject3", "subject3^9 AND", "+subject3 -Note", "(subject3~"):
        assert search(library, query, limit=1) == ["doc:3"], query
    for query in (
        "",
        "   ",
        "\0",
        "\ud800",
        "🜁" * 200,
        "the of and",
        "*",
        "a" * 5_000,
        "[* TO *]",
        "中文 テスト",
    ):
        search(library, query)
    library.close()


def test_a_page_of_text_is_read_to_its_end(folder: Path, model: WordModel | None) -> None:
    library = filled(folder, notes(30), model)
    page = "Somebody wrote a page and asked at the end. " * 95
    assert 4_000 < len(page) < 4_500
    assert search(library, f"{page}What is said of subject17?")[0] == "doc:17"
    library.close()


def test_accents_and_word_forms_are_ignored(folder: Path) -> None:
    library = filled(folder, [Record("doc:c", "Café crème", "Wir servieren naïve Gäste"), *notes(3)])
    for query in ("cafe", "CREME", "naive", "gäste"):
        assert search(library, query, limit=1) == ["doc:c"], query
    assert search(library, "notes", limit=1) != []
    library.close()


def test_dates_without_a_zone_are_utc(folder: Path, model: WordModel | None) -> None:
    naive = datetime(2026, 5, 1, 12)  # noqa: DTZ001
    library = filled(folder, [Record("doc:a", "Dated", "dated", last_updated=naive)], model)
    aware = naive.replace(tzinfo=UTC)
    assert library.get(["doc:a"])[0].last_updated == aware
    april = datetime(2026, 4, 1, tzinfo=UTC)
    for first, last, expected in ((naive, naive, 1), (aware, None, 1), (None, april, 0)):
        filters = Filters(updated_from=first, updated_until=last)
        assert len(library.search("dated", access=EVERYTHING, filters=filters)) == expected
    library.close()


def test_progress_counts_to_the_end(folder: Path) -> None:
    library = opened(folder, WordModel())
    library.write([(None, notes(30))])
    seen: list[tuple[int, int]] = []
    library.refresh(lambda done, total: seen.append((done, total)))
    assert seen[-1] == (60, 60)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    library.close()


def test_stats_count_records_and_missing_index_entries(folder: Path) -> None:
    library = opened(folder, WordModel("some-model"))
    ada = Record("person:ada", "Ada", "x", type="person", namespace="public")
    library.write([(A, notes(3)), (None, [ada])])
    assert library.stats().indexes == {"text": "missing", "vectors": "missing"}
    library.refresh()
    stats = library.stats()
    assert stats.records == {("studio", "doc"): 3, ("public", "person"): 1}
    assert (stats.sources, stats.passages, stats.model) == (1, 4, "some-model")
    assert stats.indexes == {"text": "up to date", "vectors": "up to date"}
    assert all(stats.bytes[part] > 0 for part in ("records", "text", "vectors"))
    library.write([(None, notes(2, first=50))])
    assert library.stats().indexes == {"text": "2 records behind", "vectors": "2 records behind"}
    library.close()


def test_search_works_without_embeddings_and_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "missing", lambda: ["onnxruntime"])
    said: list[str] = []
    library = open_library(KnowledgeSettings(folder), said.append)
    library.write([(None, notes(3))])
    library.refresh()
    assert search(library, "subject2", limit=1) == ["doc:2"]
    assert library.stats().model is None
    assert "no embeddings" in library.stats().indexes["vectors"]
    assert len(said) == 1
    assert "only keyword search" in said[0]
    library.close()
    open_library(KnowledgeSettings(folder, "off"), said.append).close()
    assert len(said) == 1, "who wants it so need not be told"


def test_unrelated_records_are_not_shown(folder: Path) -> None:
    library = filled(folder, notes(50), WordModel())
    assert search(library, "zygote quark") == []
    assert search(library, "subject4", limit=1) == ["doc:4"]
    library.close()


def test_library_files_are_private_to_their_owner(folder: Path) -> None:
    folder.mkdir(0o755)
    library = filled(folder, notes(2), WordModel())
    assert (folder / "knowledge.db").stat().st_mode & 0o077 == 0
    for name in ("text", "vectors"):
        assert (folder / name).stat().st_mode & 0o077 == 0
    library.close()


def test_another_database_is_rejected(folder: Path) -> None:
    folder.mkdir()
    db = apsw.Connection(str(folder / "knowledge.db"))
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    library = opened(folder)
    with pytest.raises(LibraryError, match="not a knowledge base"):
        library.write([(None, notes(1))])
    library.close()
