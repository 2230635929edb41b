"""Loads after loads: only what changed is read, what is gone goes when asked, and ids stay."""

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


class Desk:
    """A folder of files and a library beside it."""

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
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.library.close()


def counts(summary: LoadSummary) -> tuple[int, int, int, int]:
    return summary.added, summary.changed, summary.unchanged, summary.removed


def test_only_changed_files_are_read_again(desk: Desk) -> None:
    desk.write("a.md", "one")
    changing = desk.write("b.md", "two")
    assert counts(desk.load()) == (2, 0, 0, 0)
    # A new time on the same content is no change.
    os.utime(changing, (1, 1))
    assert counts(desk.load()) == (0, 0, 2, 0)
    changing.write_text("three", "utf-8")
    desk.write("c.md", "four")
    assert counts(desk.load()) == (1, 1, 1, 0)
    assert desk.texts() == {"doc:a": "one", "doc:b": "three", "doc:c": "four"}


def test_changed_options_cause_a_reload(desk: Desk) -> None:
    desk.write("a.md", "one")
    desk.load()
    assert counts(desk.load(tags=("new",))) == (0, 1, 0, 0)
    assert next(iter(desk.library)).tags == ("new",)


def test_omitting_the_owner_option_does_not_publish_personal_records(desk: Desk) -> None:
    desk.write("a.md", "mine")
    desk.load(owner="demo")
    summary = desk.load()
    (problem,) = summary.problems
    assert "doc:a is personal to demo" in problem.what
    assert "--owner demo" in problem.mend
    assert next(iter(desk.library)).owner == "demo"
    assert not desk.load(owner="demo").problems
    assert not desk.load(namespace="studio").problems
    assert next(iter(desk.library)).namespace == "studio"


def test_records_of_a_deleted_file_stay_until_a_load_with_sync(desk: Desk) -> None:
    gone = desk.write("a.md", "one")
    desk.write("b.md", "two")
    desk.load()
    gone.unlink()
    summary = desk.load()
    assert (summary.gone, summary.removed) == (1, 0)
    assert "doc:a" in desk.texts()
    assert desk.sync(dry_run=True).removed == 1
    assert "doc:a" in desk.texts()
    assert desk.sync().removed == 1
    assert desk.texts() == {"doc:b": "two"}


def test_sync_removes_nothing_outside_the_given_paths(desk: Desk) -> None:
    inside, outside = desk.write("sub/a.md", "one"), desk.write("b.md", "two")
    desk.write("sub/c.md", "three")
    desk.load()
    inside.unlink()
    outside.unlink()
    assert desk.sync(desk.folder / "sub").removed == 1
    assert desk.texts() == {"doc:b": "two", "doc:sub/c": "three"}


def test_sync_keeps_records_of_files_that_became_unreadable(desk: Desk) -> None:
    path = desk.write("a.md", "one")
    desk.write("b.md", "two")
    desk.load()
    path.write_bytes(b"\xff\xff")
    summary = desk.sync()
    assert (summary.removed, summary.failed) == (0, 1)
    assert desk.texts()["doc:a"] == "one"


def test_sync_of_an_emptied_folder_removes_nothing(desk: Desk) -> None:
    desk.write("a.md", "one")
    desk.load()
    (desk.folder / "a.md").unlink()
    summary = desk.sync()
    assert summary.removed == 0
    assert "all 1 files loaded from here are missing" in summary.problems[0].what
    assert desk.texts() == {"doc:a": "one"}


def test_sync_keeps_the_records_of_an_unreadable_folder(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.write("closed/a.md", "one")
    desk.write("b.md", "two")
    desk.load()
    look = os.scandir

    def scandir(folder: Path) -> Any:
        # By hand, because whoever may do everything may look everywhere.
        if folder.name == "closed":
            raise PermissionError(13, "Permission denied")
        return look(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    summary = desk.sync()
    assert summary.removed == 0
    assert "cannot be opened (Permission denied)" in summary.problems[0].what
    assert len(desk.texts()) == 2


def test_sync_spares_an_emptied_folder_and_follows_the_other(desk: Desk) -> None:
    desk.write("bare/a.md", "one")
    desk.write("full/b.md", "two")
    desk.write("full/c.md", "three")
    desk.load()
    (desk.folder / "bare" / "a.md").unlink()
    (desk.folder / "full" / "b.md").unlink()
    summary = desk.sync(desk.folder / "bare", desk.folder / "full")
    assert (summary.removed, len(summary.problems)) == (1, 1)
    assert desk.texts() == {"doc:bare/a": "one", "doc:full/c": "three"}


def test_hidden_files_links_and_unknown_formats_are_skipped_and_counted(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("outside", "utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "more.md").write_text("outside", "utf-8")
    desk.write("a.md", "one")
    desk.write(".hidden.md", "hidden")
    desk.write(".git/config.md", "hidden")
    desk.write("photo.PNG", "picture")
    (desk.folder / "link.md").symlink_to(tmp_path / "secret.md")
    (desk.folder / "links").symlink_to(tmp_path / "outside")
    (desk.folder / "round").symlink_to(desk.folder)
    os.mkfifo(desk.folder / "pipe.md")
    summary = desk.load()
    assert desk.texts() == {"doc:a": "one"}
    assert (summary.hidden, summary.links, dict(summary.unknown)) == (2, 3, {".png": 1})
    assert not summary.problems


def test_the_folder_of_the_library_is_not_loaded_into_itself(desk: Desk, tmp_path: Path) -> None:
    desk.write("a.md", "one")
    (tmp_path / "library").mkdir(exist_ok=True)
    (tmp_path / "library" / "notes.md").write_text("inside", "utf-8")
    summary = desk.load(tmp_path)
    assert desk.texts() == {"doc:files/a": "one"}
    assert not summary.unknown


def test_a_named_file_of_an_unknown_format_is_reported(desk: Desk) -> None:
    summary = desk.load(desk.write("photo.png", "picture"))
    assert "'.png' are not supported" in summary.problems[0].what
    assert ".md" in summary.problems[0].mend


def test_ids_are_stable_when_part_of_a_folder_is_loaded_later(desk: Desk) -> None:
    path = desk.write("guide/a.md", "one")
    desk.load()
    path.write_text("two", "utf-8")
    desk.write("guide/b.md", "new")
    desk.load(desk.folder / "guide")
    path.write_text("three", "utf-8")
    desk.load(path)
    assert desk.texts() == {"doc:guide/a": "three", "doc:guide/b": "new"}


def test_a_path_named_twice_is_loaded_once(desk: Desk) -> None:
    path = desk.write("a.md", "one")
    assert counts(desk.load(desk.folder, path, desk.folder / ".." / "files")) == (1, 0, 0, 0)


def test_files_with_the_same_name_get_distinct_stable_ids(desk: Desk) -> None:
    desk.write("a.md", "markdown")
    text = desk.write("a.txt", "text")
    desk.load()
    first = desk.texts()
    assert first.pop("doc:a") == "markdown"
    ((other, words),) = first.items()
    assert (other[:6], words) == ("doc:a-", "text")
    text.write_text("changed", "utf-8")
    desk.load()
    assert desk.texts() == {"doc:a": "markdown", other: "changed"}


def test_an_id_used_by_another_file_is_rejected_naming_both(desk: Desk) -> None:
    desk.write("a.md", "---\nid: doc:same\n---\none")
    desk.load()
    desk.write("b.md", "---\nid: doc:same\n---\ntwo")
    desk.write("c.md", "three")
    for _ in range(2):
        summary = desk.load()
        (problem,) = summary.problems
        assert problem.path.endswith("b.md")
        assert "doc:same already comes from" in problem.what
        assert problem.what.endswith("a.md")
        assert summary.failed == 1
    assert desk.texts() == {"doc:same": "one", "doc:c": "three"}
    desk.write("b.md", "---\nid: doc:other\n---\ntwo")
    assert not desk.load().problems
    assert desk.texts()["doc:other"] == "two"


def test_a_file_keeps_its_id_even_if_another_is_loaded_first(desk: Desk) -> None:
    desk.write("b.md", "---\nid: doc:same\n---\none")
    desk.load()
    desk.write("a.md", "---\nid: doc:same\n---\ntwo")
    desk.write("b.md", "---\nid: doc:same\n---\nthree")
    (problem,) = desk.load().problems
    assert problem.path.endswith("a.md")
    assert desk.texts() == {"doc:same": "three"}


def test_an_id_can_move_from_one_file_to_another(desk: Desk) -> None:
    desk.write("b.md", "---\nid: doc:wanted\n---\none")
    desk.load()
    desk.write("a.md", "---\nid: doc:wanted\n---\ntwo")
    desk.write("b.md", "---\nid: doc:other\n---\none")
    assert not desk.load().problems
    assert desk.texts() == {"doc:wanted": "two", "doc:other": "one"}


def test_a_moved_file_keeps_its_record(desk: Desk) -> None:
    path = desk.write("old/a.md", "---\nid: doc:kept\n---\none")
    desk.load()
    (desk.folder / "new").mkdir()
    path.rename(desk.folder / "new" / "a.md")
    assert not desk.load().problems
    assert desk.texts() == {"doc:kept": "one"}
    assert [uri.rpartition("files/")[2] for uri in desk.library.sources()] == ["new/a.md"]


def test_a_dry_run_reads_everything_and_writes_nothing(desk: Desk) -> None:
    desk.write("a.md", "one")
    desk.write("bad.jsonl", "broken")
    summary = desk.load(plan=LoadPlan(dry_run=True))
    assert (counts(summary), summary.failed, summary.records) == ((1, 0, 0, 0), 1, 1)
    assert len(summary.problems) == 1
    assert desk.texts() == {}
    assert desk.library.sources() == {}


def lines(*numbers: int) -> str:
    return "".join(
        json.dumps({"id": f"doc:{number:03}", "text": f"text {number}"}) + "\n" for number in numbers
    )


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "PART", 10)


@pytest.mark.usefixtures("small_parts")
def test_a_long_file_is_stored_in_parts_and_updated_with_every_change(desk: Desk) -> None:
    path = desk.write("long.jsonl", lines(*range(35)))
    summary = desk.load()
    assert (counts(summary), summary.records) == ((1, 0, 0, 0), 35)
    assert len(desk.library.sources()) == 4
    assert counts(desk.load()) == (0, 0, 1, 0)
    # One line more at the head: every record but the last moves by one, over the ends of the parts.
    path.write_text(lines(99, *range(34)), "utf-8")
    assert counts(desk.load()) == (0, 1, 0, 0)
    assert sorted(desk.texts()) == [f"doc:{number:03}" for number in (*range(34), 99)]
    # And without it and the next one, every record moves the other way.
    path.write_text(lines(*range(1, 34)), "utf-8")
    assert not desk.load().problems
    assert sorted(desk.texts()) == [f"doc:{number:03}" for number in range(1, 34)]
    path.write_text(lines(*range(5, 12)), "utf-8")
    assert counts(desk.load()) == (0, 1, 0, 0)
    assert sorted(desk.texts()) == [f"doc:{number:03}" for number in range(5, 12)]
    assert len(desk.library.sources()) == 1
    path.unlink()
    desk.write("other.md", "text")
    assert desk.sync().removed == 1
    assert list(desk.texts()) == ["doc:other"]


@pytest.mark.usefixtures("small_parts")
def test_an_interrupted_long_file_is_completed_by_the_next_load(desk: Desk) -> None:
    path = desk.write("long.jsonl", lines(*range(35)))
    summary = desk.load(stopped=lambda: True)
    assert summary.interrupted
    assert summary.done == 0
    assert len(desk.texts()) == 10
    # The file is another one by now, though of the same beginning.
    path.write_text(lines(*range(3, 33)), "utf-8")
    assert not desk.load().problems
    assert sorted(desk.texts()) == [f"doc:{number:03}" for number in range(3, 33)]
    assert counts(desk.load()) == (0, 0, 1, 0)


def test_a_stopped_load_has_written_what_it_reported(desk: Desk) -> None:
    for number in range(5):
        desk.write(f"{number}.md", "text")
    answers = iter((False, False, True))
    summary = desk.load(stopped=lambda: next(answers))
    assert summary.interrupted
    assert summary.added == len(desk.texts()) == 3
    assert counts(desk.load()) == (2, 0, 3, 0)


def test_interrupted_indexing_is_completed_by_the_next_load(desk: Desk) -> None:
    from jackfield_kb.access import Access

    desk.write("long.jsonl", lines(*range(2_500)))
    answers = iter((False, False))
    summary = desk.load(stopped=lambda: next(answers, True))
    assert (summary.interrupted, summary.added) == (True, 1)
    assert counts(desk.load()) == (0, 0, 1, 0)
    assert desk.library.stats().indexes["text"] == "up to date"
    found = desk.library.search("2499", access=Access.everything(), limit=1)
    assert [evidence.record.id for evidence in found] == ["doc:2499"]


def test_a_failure_during_a_load_is_reported_with_the_progress(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise LibraryError("its disk is full")

    desk.write("a.md", "one")
    monkeypatch.setattr(desk.library, "refresh", full)
    summary = desk.load()
    assert summary.added == 1
    assert "its disk is full" in summary.problems[0].what
    assert "run the same command again" in summary.problems[0].mend


def test_a_file_name_that_is_not_utf_8_is_loaded_and_shown_with_replacements(desk: Desk) -> None:
    (desk.folder / os.fsdecode(b"caf\xe9.md")).write_text("one", "utf-8")
    (desk.folder / os.fsdecode(b"caf\xe8.txt")).write_bytes(b"\xff\xff")
    summary = desk.load()
    json.dumps(summary.as_json(), ensure_ascii=False).encode()
    assert "caf\ufffd.txt" in summary.problems[0].path
    assert list(desk.texts().values()) == ["one"]
    assert counts(desk.load()) == (0, 0, 1, 0)


def test_loaded_records_can_be_found(desk: Desk) -> None:
    from jackfield_kb.access import Access

    desk.write("a.md", "# Photo room\nBook the photo room in the team calendar.")
    desk.write("b.md", "# Plotter\nProofs are printed on the plotter.")
    desk.load()
    found = desk.library.search("who may print proofs", access=Access.everything(), namespace=None, limit=1)
    assert [evidence.record.id for evidence in found] == ["doc:b"]


def test_a_record_without_a_file_is_not_taken_over(desk: Desk) -> None:
    desk.library.write([(None, [Record("doc:mine", "Mine", "by hand")])])
    desk.write("a.md", "---\nid: doc:mine\n---\ntheirs")
    summary = desk.load()
    assert "already comes from a record without a file" in summary.problems[0].what
    assert desk.texts() == {"doc:mine": "by hand"}
