"""Repeated loads: only changes are read, deletions are followed on request, and ids are stable."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jackfield_capability_types.knowledge import Record
from jackfield_kb.cli.terminal import NoProgress
from jackfield_kb.errors import LibraryError
from jackfield_kb.library import Library
from jackfield_kb.loader import file_reader
from jackfield_kb.loader.drafts import LoadOptions
from jackfield_kb.loader.load import LoadPlan, LoadRun, LoadSummary


class LibraryLoader:
    """A folder of files, and a library next to it."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "files"
        self.folder.mkdir()
        self.library = Library(root / "library", embedder=None, notice=lambda line: None)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def load(
        self,
        *paths: Path,
        stopped: Callable[[], bool] = lambda: False,
        plan: LoadPlan | None = None,
        **options: Any,
    ) -> LoadSummary:
        chosen = plan or LoadPlan(LoadOptions(**options))
        return LoadRun(self.library, chosen, NoProgress(), stopped).run(paths or (self.folder,))

    def sync(self, *paths: Path, dry_run: bool = False) -> LoadSummary:
        return self.load(*paths, plan=LoadPlan(sync=True, dry_run=dry_run))

    def texts(self) -> dict[str, str]:
        return {record.id: record.text for record in self.library}


@pytest.fixture
def loader(tmp_path: Path) -> Iterator[LibraryLoader]:
    loader = LibraryLoader(tmp_path)
    yield loader
    loader.library.close()


def counts(summary: LoadSummary) -> tuple[int, int, int, int]:
    return summary.added, summary.changed, summary.unchanged, summary.removed


def test_only_changed_files_are_read_again(loader: LibraryLoader) -> None:
    loader.write("a.md", "one")
    changing = loader.write("b.md", "two")
    assert counts(loader.load()) == (2, 0, 0, 0)
    # A new time with the same content is not a change.
    os.utime(changing, (1, 1))
    assert counts(loader.load()) == (0, 0, 2, 0)
    changing.write_text("three", "utf-8")
    loader.write("c.md", "four")
    assert counts(loader.load()) == (1, 1, 1, 0)
    assert loader.texts() == {"doc:a": "one", "doc:b": "three", "doc:c": "four"}


def test_changed_options_cause_a_reload(loader: LibraryLoader) -> None:
    loader.write("a.md", "one")
    loader.load()
    assert counts(loader.load(tags=("new",))) == (0, 1, 0, 0)
    assert next(iter(loader.library)).tags == ("new",)


def test_omitting_the_owner_option_does_not_publish_personal_records(loader: LibraryLoader) -> None:
    loader.write("a.md", "mine")
    loader.load(owner="demo")
    summary = loader.load()
    (problem,) = summary.problems
    assert "doc:a is personal to demo" in problem.what
    assert "--owner demo" in problem.remedy
    assert next(iter(loader.library)).owner == "demo"
    assert not loader.load(owner="demo").problems
    assert not loader.load(namespace="studio").problems
    assert next(iter(loader.library)).namespace == "studio"


def test_records_of_a_deleted_file_stay_until_a_load_with_sync(loader: LibraryLoader) -> None:
    gone = loader.write("a.md", "one")
    loader.write("b.md", "two")
    loader.load()
    gone.unlink()
    summary = loader.load()
    assert (summary.gone, summary.removed) == (1, 0)
    assert "doc:a" in loader.texts()
    assert loader.sync(dry_run=True).removed == 1
    assert "doc:a" in loader.texts()
    assert loader.sync().removed == 1
    assert loader.texts() == {"doc:b": "two"}


def test_sync_removes_nothing_outside_the_given_paths(loader: LibraryLoader) -> None:
    inside, outside = loader.write("sub/a.md", "one"), loader.write("b.md", "two")
    loader.write("sub/c.md", "three")
    loader.load()
    inside.unlink()
    outside.unlink()
    assert loader.sync(loader.folder / "sub").removed == 1
    assert loader.texts() == {"doc:b": "two", "doc:sub/c": "three"}


def test_sync_keeps_records_of_files_that_became_unreadable(loader: LibraryLoader) -> None:
    path = loader.write("a.md", "one")
    loader.write("b.md", "two")
    loader.load()
    path.write_bytes(b"\xff\xff")
    summary = loader.sync()
    assert (summary.removed, summary.failed) == (0, 1)
    assert loader.texts()["doc:a"] == "one"


def test_sync_of_an_emptied_folder_removes_nothing(loader: LibraryLoader) -> None:
    loader.write("a.md", "one")
    loader.load()
    (loader.folder / "a.md").unlink()
    summary = loader.sync()
    assert summary.removed == 0
    assert "all files loaded from this path (1) are missing" in summary.problems[0].what
    assert loader.texts() == {"doc:a": "one"}


def test_sync_keeps_the_records_of_an_unreadable_folder(
    loader: LibraryLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader.write("closed/a.md", "one")
    loader.write("b.md", "two")
    loader.load()
    look = os.scandir

    def scandir(folder: Path) -> Any:
        # Simulated, because root may read every folder.
        if folder.name == "closed":
            raise PermissionError(13, "Permission denied")
        return look(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    summary = loader.sync()
    assert summary.removed == 0
    assert "cannot be opened (Permission denied)" in summary.problems[0].what
    assert len(loader.texts()) == 2


def test_sync_spares_an_emptied_folder_and_follows_the_other(loader: LibraryLoader) -> None:
    loader.write("bare/a.md", "one")
    loader.write("full/b.md", "two")
    loader.write("full/c.md", "three")
    loader.load()
    (loader.folder / "bare" / "a.md").unlink()
    (loader.folder / "full" / "b.md").unlink()
    summary = loader.sync(loader.folder / "bare", loader.folder / "full")
    assert (summary.removed, len(summary.problems)) == (1, 1)
    assert loader.texts() == {"doc:bare/a": "one", "doc:full/c": "three"}


def test_hidden_files_links_and_unknown_formats_are_skipped_and_counted(
    loader: LibraryLoader, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("outside", "utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "more.md").write_text("outside", "utf-8")
    loader.write("a.md", "one")
    loader.write(".hidden.md", "hidden")
    loader.write(".git/config.md", "hidden")
    loader.write("photo.PNG", "picture")
    (loader.folder / "link.md").symlink_to(tmp_path / "secret.md")
    (loader.folder / "links").symlink_to(tmp_path / "outside")
    (loader.folder / "round").symlink_to(loader.folder)
    os.mkfifo(loader.folder / "pipe.md")
    summary = loader.load()
    assert loader.texts() == {"doc:a": "one"}
    assert (summary.hidden, summary.links, dict(summary.unknown)) == (2, 3, {".png": 1})
    assert not summary.problems


def test_the_folder_of_the_library_is_not_loaded_into_itself(loader: LibraryLoader, tmp_path: Path) -> None:
    loader.write("a.md", "one")
    (tmp_path / "library").mkdir(exist_ok=True)
    (tmp_path / "library" / "notes.md").write_text("inside", "utf-8")
    summary = loader.load(tmp_path)
    assert loader.texts() == {"doc:files/a": "one"}
    assert not summary.unknown


def test_a_named_file_of_an_unknown_format_is_reported(loader: LibraryLoader) -> None:
    summary = loader.load(loader.write("photo.png", "picture"))
    assert "'.png' are not supported" in summary.problems[0].what
    assert ".md" in summary.problems[0].remedy


def test_ids_are_stable_when_part_of_a_folder_is_loaded_later(loader: LibraryLoader) -> None:
    path = loader.write("guide/a.md", "one")
    loader.load()
    path.write_text("two", "utf-8")
    loader.write("guide/b.md", "new")
    loader.load(loader.folder / "guide")
    path.write_text("three", "utf-8")
    loader.load(path)
    assert loader.texts() == {"doc:guide/a": "three", "doc:guide/b": "new"}


def test_a_path_named_twice_is_loaded_once(loader: LibraryLoader) -> None:
    path = loader.write("a.md", "one")
    assert counts(loader.load(loader.folder, path, loader.folder / ".." / "files")) == (1, 0, 0, 0)


def test_files_with_the_same_name_get_distinct_stable_ids(loader: LibraryLoader) -> None:
    loader.write("a.md", "markdown")
    text = loader.write("a.txt", "text")
    loader.load()
    first = loader.texts()
    assert first.pop("doc:a") == "markdown"
    ((other, words),) = first.items()
    assert (other[:6], words) == ("doc:a-", "text")
    text.write_text("changed", "utf-8")
    loader.load()
    assert loader.texts() == {"doc:a": "markdown", other: "changed"}


def test_an_id_used_by_another_file_is_rejected_naming_both(loader: LibraryLoader) -> None:
    loader.write("a.md", "---\nid: doc:same\n---\none")
    loader.load()
    loader.write("b.md", "---\nid: doc:same\n---\ntwo")
    loader.write("c.md", "three")
    for _ in range(2):
        summary = loader.load()
        (problem,) = summary.problems
        assert problem.path.endswith("b.md")
        assert "doc:same already comes from" in problem.what
        assert problem.what.endswith("a.md")
        assert summary.failed == 1
    assert loader.texts() == {"doc:same": "one", "doc:c": "three"}
    loader.write("b.md", "---\nid: doc:other\n---\ntwo")
    assert not loader.load().problems
    assert loader.texts()["doc:other"] == "two"


def test_a_file_keeps_its_id_even_if_another_is_loaded_first(loader: LibraryLoader) -> None:
    loader.write("b.md", "---\nid: doc:same\n---\none")
    loader.load()
    loader.write("a.md", "---\nid: doc:same\n---\ntwo")
    loader.write("b.md", "---\nid: doc:same\n---\nthree")
    (problem,) = loader.load().problems
    assert problem.path.endswith("a.md")
    assert loader.texts() == {"doc:same": "three"}


def test_an_id_can_move_from_one_file_to_another(loader: LibraryLoader) -> None:
    loader.write("b.md", "---\nid: doc:wanted\n---\none")
    loader.load()
    loader.write("a.md", "---\nid: doc:wanted\n---\ntwo")
    loader.write("b.md", "---\nid: doc:other\n---\none")
    assert not loader.load().problems
    assert loader.texts() == {"doc:wanted": "two", "doc:other": "one"}


def test_a_moved_file_keeps_its_record(loader: LibraryLoader) -> None:
    path = loader.write("old/a.md", "---\nid: doc:kept\n---\none")
    loader.load()
    (loader.folder / "new").mkdir()
    path.rename(loader.folder / "new" / "a.md")
    assert not loader.load().problems
    assert loader.texts() == {"doc:kept": "one"}
    assert [uri.rpartition("files/")[2] for uri in loader.library.sources()] == ["new/a.md"]


def test_a_dry_run_reads_everything_and_writes_nothing(loader: LibraryLoader) -> None:
    loader.write("a.md", "one")
    loader.write("bad.jsonl", "broken")
    summary = loader.load(plan=LoadPlan(dry_run=True))
    assert (counts(summary), summary.failed, summary.records) == ((1, 0, 0, 0), 1, 1)
    assert len(summary.problems) == 1
    assert loader.texts() == {}
    assert loader.library.sources() == {}


def lines(*numbers: int) -> str:
    return "".join(
        json.dumps({"id": f"doc:{number:03}", "text": f"text {number}"}) + "\n" for number in numbers
    )


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "PART", 10)


@pytest.mark.usefixtures("small_parts")
def test_a_long_file_is_stored_in_parts_and_updated_with_every_change(loader: LibraryLoader) -> None:
    path = loader.write("long.jsonl", lines(*range(35)))
    summary = loader.load()
    assert (counts(summary), summary.records) == ((1, 0, 0, 0), 35)
    assert len(loader.library.sources()) == 4
    assert counts(loader.load()) == (0, 0, 1, 0)
    # One more line at the beginning: every record but the last moves by one, across parts.
    path.write_text(lines(99, *range(34)), "utf-8")
    assert counts(loader.load()) == (0, 1, 0, 0)
    assert sorted(loader.texts()) == [f"doc:{number:03}" for number in (*range(34), 99)]
    # Without it and the next one, every record moves the other way.
    path.write_text(lines(*range(1, 34)), "utf-8")
    assert not loader.load().problems
    assert sorted(loader.texts()) == [f"doc:{number:03}" for number in range(1, 34)]
    path.write_text(lines(*range(5, 12)), "utf-8")
    assert counts(loader.load()) == (0, 1, 0, 0)
    assert sorted(loader.texts()) == [f"doc:{number:03}" for number in range(5, 12)]
    assert len(loader.library.sources()) == 1
    path.unlink()
    loader.write("other.md", "text")
    assert loader.sync().removed == 1
    assert list(loader.texts()) == ["doc:other"]


@pytest.mark.usefixtures("small_parts")
def test_an_interrupted_long_file_is_completed_by_the_next_load(loader: LibraryLoader) -> None:
    path = loader.write("long.jsonl", lines(*range(35)))
    summary = loader.load(stopped=lambda: True)
    assert summary.interrupted
    assert summary.done == 0
    assert len(loader.texts()) == 10
    # The file has changed, although its beginning is the same.
    path.write_text(lines(*range(3, 33)), "utf-8")
    assert not loader.load().problems
    assert sorted(loader.texts()) == [f"doc:{number:03}" for number in range(3, 33)]
    assert counts(loader.load()) == (0, 0, 1, 0)


def test_a_stopped_load_has_written_what_it_reported(loader: LibraryLoader) -> None:
    for number in range(5):
        loader.write(f"{number}.md", "text")
    answers = iter((False, False, True))
    summary = loader.load(stopped=lambda: next(answers))
    assert summary.interrupted
    assert summary.added == len(loader.texts()) == 3
    assert counts(loader.load()) == (2, 0, 3, 0)


def test_interrupted_indexing_is_completed_by_the_next_load(loader: LibraryLoader) -> None:
    from jackfield_kb.access import Access

    loader.write("long.jsonl", lines(*range(2_500)))
    answers = iter((False, False))
    summary = loader.load(stopped=lambda: next(answers, True))
    assert (summary.interrupted, summary.added) == (True, 1)
    assert counts(loader.load()) == (0, 0, 1, 0)
    assert loader.library.stats().indexes["text"] == "up to date"
    found = loader.library.search("2499", access=Access.everything(), limit=1)
    assert [evidence.record.id for evidence in found] == ["doc:2499"]


def test_a_failure_during_a_load_is_reported_with_the_progress(
    loader: LibraryLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise LibraryError("its disk is full")

    loader.write("a.md", "one")
    monkeypatch.setattr(loader.library, "refresh", full)
    summary = loader.load()
    assert summary.added == 1
    assert "its disk is full" in summary.problems[0].what
    assert "run the same command again" in summary.problems[0].remedy


def test_a_file_name_that_is_not_utf_8_is_loaded_and_shown_with_replacements(loader: LibraryLoader) -> None:
    (loader.folder / os.fsdecode(b"caf\xe9.md")).write_text("one", "utf-8")
    (loader.folder / os.fsdecode(b"caf\xe8.txt")).write_bytes(b"\xff\xff")
    summary = loader.load()
    json.dumps(summary.as_json(), ensure_ascii=False).encode()
    assert "caf\ufffd.txt" in summary.problems[0].path
    assert list(loader.texts().values()) == ["one"]
    assert counts(loader.load()) == (0, 0, 1, 0)


def test_loaded_records_can_be_found(loader: LibraryLoader) -> None:
    from jackfield_kb.access import Access

    loader.write("a.md", "# Photo room\nBook the photo room in the team calendar.")
    loader.write("b.md", "# Plotter\nProofs are printed on the plotter.")
    loader.load()
    found = loader.library.search("who may print proofs", access=Access.everything(), namespace=None, limit=1)
    assert [evidence.record.id for evidence in found] == ["doc:b"]


def test_a_record_without_a_file_is_not_taken_over(loader: LibraryLoader) -> None:
    loader.library.write([(None, [Record("doc:mine", "Mine", "by hand")])])
    loader.write("a.md", "---\nid: doc:mine\n---\ntheirs")
    summary = loader.load()
    assert "already comes from a record without a file" in summary.problems[0].what
    assert loader.texts() == {"doc:mine": "by hand"}
