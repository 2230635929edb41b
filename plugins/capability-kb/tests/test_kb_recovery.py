"""Missing, damaged or incompatible indexes are detected and rebuilt without loss."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from jackfield_kb.errors import IndexUnavailableError
from jackfield_kb.library import Library
from kb_fixtures import EVERYTHING, WordModel, filled, ids, notes, opened

COUNT = 2_100
"""More than a block of vectors, so that the index has every file."""

TEXT = ("*.term", "*.idx", "*.fast", "*.fieldnorm", "meta.json", "../current.json")
VECTORS = ("vectors", "signs", "keys", "scopes", "types", "updated", "tags", "names", "centre")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def fill_with_rubbish(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


def remove(path: Path) -> None:
    path.unlink()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "knowledge"
    filled(folder, [replace(note, tags=("t",)) for note in notes(COUNT)], WordModel()).close()
    return folder


def copy(sound: Path, folder: Path) -> None:
    shutil.copytree(sound, folder)


def found(library: Library, number: int = 1_234) -> list[str]:
    return ids(library.search(f"subject{number}", access=EVERYTHING, limit=1))


@pytest.mark.parametrize(
    ("name", "harm"),
    [(name, harm) for name in TEXT for harm in (flip, cut, fill_with_rubbish, remove)
     # A changed letter in tantivy's JSON can be harmless.
     if (name, harm) != ("meta.json", flip)],
)  # fmt: skip
def test_a_damaged_full_text_index_is_rebuilt(
    sound: Path, folder: Path, name: str, harm: Callable[[Path], None]
) -> None:
    copy(sound, folder)
    (generation,) = (folder / "text").glob("g*")
    target = generation / name if "/" in name else next(iter(generation.glob(name)))
    harm(target)
    notices: list[str] = []
    library = opened(folder, None, notices)
    try:
        assert found(library) == ["doc:1234"]
    except IndexUnavailableError:
        library.refresh()
        assert found(library) == ["doc:1234"]
    library.close()
    later: list[str] = []
    again = opened(folder, None, later)
    assert found(again) == ["doc:1234"]
    assert not [line for line in later if "damaged" in line], "mended for good"
    again.close()
    if harm is not remove:
        assert [line for line in notices if "rebuilt" in line]


@pytest.mark.parametrize(
    ("name", "harm"),
    [*((name, flip) for name in VECTORS), *(("signs", harm) for harm in (cut, fill_with_rubbish, remove)),
     *(("../current.json", harm) for harm in (cut, fill_with_rubbish, remove))],
)  # fmt: skip
def test_a_damaged_vector_index_is_rebuilt_while_full_text_search_works(
    sound: Path, folder: Path, name: str, harm: Callable[[Path], None]
) -> None:
    copy(sound, folder)
    (generation,) = (folder / "vectors").glob("g*")
    harm(generation / name)
    notices: list[str] = []
    library = opened(folder, WordModel(), notices)
    assert found(library) == ["doc:1234"], "full text is enough"
    library.refresh()
    assert library.stats().indexes["vectors"] == "up to date"
    assert found(library) == ["doc:1234"]
    library.close()
    if name != "../current.json" or harm is not remove:
        assert [line for line in notices if "rebuilt" in line]


def test_both_indexes_are_rebuilt_from_the_records(sound: Path, folder: Path) -> None:
    copy(sound, folder)
    shutil.rmtree(folder / "text")
    shutil.rmtree(folder / "vectors")
    library = opened(folder, WordModel())
    library.refresh()
    assert found(library) == ["doc:1234"]
    assert len(list(library)) == COUNT
    library.close()


def test_another_model_has_its_own_vectors(sound: Path, folder: Path) -> None:
    copy(sound, folder)
    notices: list[str] = []
    library = opened(folder, WordModel("other", dimensions=64), notices)
    assert found(library) == ["doc:1234"]
    library.refresh()
    assert any("words" in line and "other" in line for line in notices)
    assert library.stats().indexes["vectors"] == "up to date"
    assert found(library) == ["doc:1234"]
    library.close()


def test_an_index_of_another_version_is_rebuilt(sound: Path, folder: Path) -> None:
    copy(sound, folder)
    for name in ("text", "vectors"):
        current = folder / name / "current.json"
        current.write_text(json.dumps({**json.loads(current.read_text()), "format": 99}))
    library = opened(folder, WordModel())
    library.refresh()
    assert found(library) == ["doc:1234"]
    library.close()


def test_records_of_an_interrupted_run_are_indexed_once(folder: Path) -> None:
    library = filled(folder, notes(20))
    # As if the process had ended after it committed the last twelve, and before it said so.
    current = folder / "text" / "current.json"
    said = json.loads(current.read_text())
    current.write_text(json.dumps({**said, "position": [8, 0]}))
    library.refresh()
    assert library.stats().passages == 20
    assert ids(library.search("subject15", access=EVERYTHING, limit=50))[0] == "doc:15"
    library.close()


def test_a_rebuild_keeps_the_old_index_until_it_is_done(sound: Path, folder: Path) -> None:
    copy(sound, folder)
    library = opened(folder, WordModel())
    other = opened(folder, WordModel())
    seen: list[list[str]] = []
    library.rebuild(lambda done, total: seen.append(found(other)))
    assert seen
    assert all(each == ["doc:1234"] for each in seen)
    assert found(other) == ["doc:1234"]
    for index in ("text", "vectors"):
        assert len(list((folder / index).glob("g*"))) == 1, "the old folder is gone"
    library.close()
    other.close()


def test_checksums_stay_valid_while_segments_are_merged(folder: Path) -> None:
    notices: list[str] = []
    library = opened(folder, None, notices)
    # Many small commits, so that tantivy merges them in the background while the next ones are written.
    for first in range(0, 1_200, 20):
        library.write([(None, notes(20, first=first))])
        library.refresh()
        fresh = opened(folder, None, notices)
        assert found(fresh, first) == [f"doc:{first}"]
        fresh.close()
    assert not notices
    library.close()
