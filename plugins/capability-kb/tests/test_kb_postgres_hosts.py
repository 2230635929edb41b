"""Several hosts with one database: changes, loads, killed loaders, new hosts and outages."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.knowledge import Record
from jackfield_kb.capability import LibraryKnowledge
from jackfield_kb.errors import DatabaseUnavailableError, LibraryError
from jackfield_kb.library import Library, Source
from jackfield_kb.loader.load import LoadPlan, LoadRun, LoadSummary
from jackfield_kb.postgres import replica_search, vector_rescue
from jackfield_kb.postgres.database import SessionPool
from jackfield_kb.settings import KnowledgeSettings
from jackfield_testkit import SessionStub
from jackfield_testkit.postgres import PostgresServer
from kb_fixtures import EVERYTHING, WordModel, ids, notes
from kb_postgres import Databases, find, shared, until

HERE = Path(__file__).parent
LOADER = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path
from kb_fixtures import WordModel
from kb_postgres import shared
from jackfield_kb.loader.load import LoadPlan, LoadRun

class Listener:
    def progressed(self, summary):
        print(summary.done, flush=True)
    def indexed(self, done, total):
        print("indexed", flush=True)

library = shared(sys.argv[1], Path(sys.argv[2]), WordModel(), lease=2.0)
summary = LoadRun(library, LoadPlan(), Listener(), lambda: False).run([Path(sys.argv[3])])
library.close()
print("problems", summary.problems, flush=True)
"""


class Silent:
    def progressed(self, summary: LoadSummary) -> None:
        pass

    def indexed(self, done: int, total: int) -> None:
        pass


def load(library: Library, *paths: Path) -> LoadSummary:
    return LoadRun(library, LoadPlan(), Silent(), lambda: False).run(paths)


def loader_process(url: str, folder: Path, documents: Path) -> subprocess.Popen[str]:
    code = LOADER.format(here=str(HERE))
    return subprocess.Popen(
        [sys.executable, "-c", code, url, str(folder), str(documents)], stdout=subprocess.PIPE, text=True
    )


def write_documents(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        (folder / f"note{number}.md").write_text(f"# Note {number}\n\nThis is about subject{number}.\n")


def is_current(library: Library) -> bool:
    return set(library.stats().indexes.values()) == {"up to date"}


@pytest.fixture(params=["indexes on the host", "search in PostgreSQL"])
def host(request: pytest.FixtureRequest, url: str, tmp_path: Path) -> Callable[..., Library]:
    """Opens a host: its indexes are in a folder of its own, or PostgreSQL searches."""
    local = request.param == "indexes on the host"
    return lambda name, model=None: shared(url, tmp_path / name if local else None, model or WordModel())


def test_another_process_loads_and_this_host_finds_it(
    host: Callable[..., Library], url: str, tmp_path: Path
) -> None:
    write_documents(tmp_path / "documents", 30)
    library = host("server")
    library.follow()
    child = loader_process(url, tmp_path / "loader", tmp_path / "documents")
    until(lambda: ids(find(library, "subject17", limit=1)) == ["doc:note17"])
    output, _ = child.communicate()
    assert "problems []" in output
    until(lambda: is_current(library))
    assert find(library, "subject17", limit=1).incomplete is None
    library.close()


def test_changes_and_removals_reach_other_hosts(host: Callable[..., Library]) -> None:
    writer, reader = host("writer"), host("reader")
    a = Source("file:///a.md", "1", "file:///")
    writer.write([(a, notes(20))])
    writer.refresh()
    reader.follow()
    until(lambda: is_current(reader))
    writer.write([(a._replace(digest="2"), [Record("doc:1", "Changed", "now about lemons"), *notes(3, 5)])])
    writer.refresh()
    until(lambda: ids(find(reader, "lemons", limit=1)) == ["doc:1"] and is_current(reader))
    assert "doc:0" not in ids(find(reader, "subject0 subject19", limit=20))
    writer.delete(["doc:6"])
    until(lambda: "doc:6" not in ids(find(reader, "subject6", limit=20)))
    for library in (writer, reader):
        library.close()


def test_polling_finds_a_change_that_was_not_announced(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionPool, "announce", lambda self: None)
    writer, reader = shared(url, tmp_path / "a"), shared(url, tmp_path / "b")
    reader.follow()
    writer.write([(None, notes(5))])
    until(lambda: ids(find(reader, "subject3", limit=1)) == ["doc:3"])
    for library in (writer, reader):
        library.close()


def test_vectors_are_computed_once_for_all_hosts(host: Callable[..., Library]) -> None:
    models = [WordModel() for _ in range(3)]
    loader, second, third = (host(f"host{number}", model) for number, model in enumerate(models))
    loader.write([(None, notes(200))])
    loader.refresh()
    second.refresh()
    third.follow()
    until(lambda: is_current(third))
    assert [model.texts for model in models] == [200, 0, 0]
    for library in (loader, second, third):
        library.close()


def test_vectors_of_a_loader_that_died_are_computed_by_a_host(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_rescue.VectorRescue.__init__, "__defaults__", (0.2,))
    writer = shared(url, tmp_path / "writer")
    writer.write([(None, notes(50))])
    writer.close()
    model = WordModel()
    library = shared(url, tmp_path / "server", model)
    library.follow()
    until(lambda: is_current(library))
    assert model.texts == 50
    library.close()


def test_a_load_waits_for_nobody_but_a_loader_of_the_same_files(url: str, tmp_path: Path) -> None:
    write_documents(tmp_path / "documents", 3)
    write_documents(tmp_path / "others", 3)
    (tmp_path / "documents" / "sub").mkdir()
    first, second = shared(url, tmp_path / "a", lease=0.4), shared(url, tmp_path / "b", lease=0.4)
    with first.loading([(tmp_path / "documents").as_uri()]):
        for path in (tmp_path / "documents", tmp_path / "documents" / "sub", tmp_path):
            (problem,) = load(second, path).problems
            assert "is being loaded by" in problem.what
            assert f"process {os.getpid()}" in problem.what
        assert load(second, tmp_path / "others").added == 3
    assert load(second, tmp_path / "documents").added == 3
    for library in (first, second):
        library.close()


def test_a_killed_loader_leaves_nothing_half_loaded_and_nothing_doubled(url: str, tmp_path: Path) -> None:
    write_documents(tmp_path / "documents", 400)
    child = loader_process(url, tmp_path / "killed", tmp_path / "documents")
    assert child.stdout is not None
    # Some batches of 64 files are written, and the next one is under way.
    while int(child.stdout.readline()) < 100:
        pass
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    library = shared(url, tmp_path / "other", WordModel(), lease=2.0)
    before = len(list(library))
    assert 100 <= before < 400
    assert len(library.sources()) == before, "a source is there with all its records or not at all"
    summary = load(library, tmp_path / "documents")
    assert summary.problems == []
    assert (summary.unchanged, summary.added) == (before, 400 - before)
    assert [record.id for record in library] == sorted(f"doc:note{n}" for n in range(400))
    assert library.stats().passages == 400
    assert ids(find(library, "subject399", limit=1)) == ["doc:note399"]
    library.close()


def test_a_loader_that_lost_its_lease_writes_nothing_more(
    url: str, tmp_path: Path, databases: Databases
) -> None:
    library = shared(url, tmp_path / "a")
    with library.loading(["file:///documents"]):
        library.write([(None, notes(1))])
        name = url.rpartition("/")[2]
        databases.server.execute("UPDATE jackfield_kb.leases SET until = now()", database=name)
        with pytest.raises(LibraryError, match="another host may be loading the same files"):
            library.write([(None, notes(5))])
    assert len(list(library)) == 1
    library.close()


def test_a_file_of_another_machine_is_not_taken_for_a_deleted_one(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record keeps its source, whose file this machine does not have, and a new file gets another id."""
    library = shared(url, tmp_path / "a")
    elsewhere = Source("file:///elsewhere/guide.md", "1", "file:///elsewhere/guide.md")
    with monkeypatch.context() as patched:
        patched.setattr("socket.gethostname", lambda: "another-machine")
        library.write([(elsewhere, [Record("doc:guide", "Guide", "The other guide.")])])
    (tmp_path / "guide.md").write_text("# Guide\n\nThe guide of this machine.\n")
    assert load(library, tmp_path / "guide.md").added == 1
    assert [record.text for record in library][:1] == ["The other guide."]
    assert len(list(library)) == 2
    library.close()


def test_a_new_host_says_that_its_index_is_not_complete(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jackfield.kb")
    writer = shared(url, tmp_path / "writer")
    for first in range(0, 3_000, 1_000):
        writer.write([(None, notes(1_000, first))])
    # The host stops after its first part, until the test has seen its answer.
    monkeypatch.setattr(replica_search, "_AT_ONCE", 1_000)
    paused, going = threading.Event(), threading.Event()
    tell = replica_search.ReplicaSearch._tell

    def pause(self: replica_search.ReplicaSearch) -> None:
        tell(self)
        if self._replica.position().number == 2_000:
            paused.set()
            going.wait(30)

    monkeypatch.setattr(replica_search.ReplicaSearch, "_tell", pause)
    library = shared(url, tmp_path / "server")
    library.follow()
    assert paused.wait(30)
    found = find(library, "subject7", limit=1)
    assert ids(found) == ["doc:7"], "it serves what it has"
    assert found.incomplete is not None
    assert ids(find(library, "subject2999", limit=1)) == []
    assert [record.id for record in library.visible(["doc:2999"], EVERYTHING)] == ["doc:2999"]
    going.set()
    until(lambda: ids(find(library, "subject2999", limit=1)) == ["doc:2999"])
    until(lambda: find(library, "subject2999").incomplete is None)
    assert "1,000 of 3,000 records copied" in caplog.text
    for each in (library, writer):
        each.close()


def test_search_in_postgres_says_that_its_tables_are_not_complete(url: str) -> None:
    library = shared(url)
    library.write([(None, notes(5))])
    assert find(library, "subject3").incomplete is not None
    library.refresh()
    assert find(library, "subject3").incomplete is None
    library.close()


def test_an_index_of_another_database_is_replaced(create_database: Callable[[], str], tmp_path: Path) -> None:
    for word in ("lemons", "walnuts"):
        library = shared(create_database(), tmp_path / "host", WordModel())
        library.write([(None, [Record(f"doc:{word}", word, f"All about {word}."), *notes(3)])])
        library.refresh()
        assert ids(find(library, word, limit=1)) == [f"doc:{word}"]
        assert "doc:lemons" not in ids(find(library, "lemons")) or word == "lemons"
        library.close()


def test_an_outage_is_a_transient_error_and_local_search_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        with PostgresServer.temporary() as server:
            notices: list[str] = []
            url = server.uri()
            local = shared(url, tmp_path / "host", WordModel(), notices.append)
            inside = shared(url, None, WordModel())
            local.write([(None, notes(20))])
            for library in (local, inside):
                library.refresh()
                library.follow()
            server.kill()
            views = [
                LibraryKnowledge(library, KnowledgeSettings(patience=20)).for_session(SessionStub("ann"))
                for library in (local, inside)
            ]
            found = await views[0].search("subject7", limit=1)
            assert [each.record.id for each in found] == ["doc:7"]
            assert [each.id for each in await views[0].get(["doc:7"])] == ["doc:7"]
            for call in (views[1].search("subject7"), views[1].get(["doc:7"])):
                with pytest.raises(ToolError) as raised:
                    await call
                assert raised.value.type is ErrorType.TRANSIENT
                assert raised.value.retryable
                assert "database" in raised.value.message
                assert str(server.port) not in raised.value.message
            with pytest.raises(DatabaseUnavailableError):
                local.write([(None, notes(1, first=50))])
            await asyncio.to_thread(until, lambda: any("do not find changes" in line for line in notices))
            server.start()
            await asyncio.to_thread(until, lambda: _writes(local))
            await asyncio.to_thread(until, lambda: ids(find(local, "subject60", limit=1)) == ["doc:60"])
            await asyncio.to_thread(until, lambda: ids(find(inside, "subject60", limit=1)) == ["doc:60"])
            await asyncio.to_thread(until, lambda: any("find the changes" in line for line in notices))
            for library in (local, inside):
                library.close()

    asyncio.run(main())


def _writes(library: Library) -> bool:
    try:
        library.write([(None, notes(1, first=60))])
    except DatabaseUnavailableError:
        return False
    return True
