"""A database that crashes or fails over while files are loaded and while another host follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from jackfield_kb.errors import DatabaseUnavailableError
from jackfield_kb.library import Library
from jackfield_kb.loader.load import LoadPlan, LoadRun, LoadSummary
from jackfield_testkit.postgres import PostgresServer
from kb_fixtures import WordModel, ids
from kb_postgres import find, shared, until

COUNT = 300


class Fault:
    """Breaks the database once, in the middle of a load."""

    def __init__(self, strike: Callable[[], None]) -> None:
        self.struck = False
        self._strike = strike

    def progressed(self, summary: LoadSummary) -> None:
        # Some batches of 64 files are written.
        if summary.done >= COUNT // 3 and not self.struck:
            self.struck = True
            self._strike()

    def indexed(self, done: int, total: int) -> None:
        pass


class Site:
    """A database that can break, and its address."""

    def __init__(self, url: str, strike: Callable[[], None]) -> None:
        self.url = url
        self.strike = strike


@pytest.fixture(params=["crash", "failover"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """A server that crashes and restarts, or a primary whose synchronous standby is promoted."""
    with ExitStack() as stack:
        primary = stack.enter_context(PostgresServer.temporary())
        if request.param == "crash":
            yield Site(primary.uri(), lambda: primary.restart("immediate"))
            return
        standby = stack.enter_context(primary.standby(primary.folder.parent / "standby", "sb1"))
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (sb1)'")
        primary.execute("SELECT pg_reload_conf()")

        def fail_over() -> None:
            primary.kill()
            standby.promote()

        servers = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        yield Site(f"postgresql://postgres@{servers}/postgres", fail_over)


def load(library: Library, documents: Path, listener: Fault) -> LoadSummary | None:
    """Load a folder; None if the database could not be used."""
    try:
        return LoadRun(library, LoadPlan(), listener, lambda: False).run([documents])
    except DatabaseUnavailableError:
        return None


def test_a_load_during_a_fault_can_be_repeated_and_other_hosts_follow(site: Site, tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    for number in range(COUNT):
        (documents / f"note{number}.md").write_text(f"# Note {number}\n\nThis is about subject{number}.\n")
    loader = shared(site.url, tmp_path / "loader", WordModel(), lease=2.0)
    follower = shared(site.url, tmp_path / "follower", WordModel())
    follower.follow()

    fault = Fault(site.strike)
    first = load(loader, documents, fault)
    assert fault.struck
    # What was reported as loaded is there, and a source is there with all its records or not at all.
    there = len(list(loader))
    assert there == len(loader.sources())
    assert there >= (COUNT // 3 if first is None else first.added)

    again = load(loader, documents, Fault(lambda: None))
    assert again is not None
    assert again.problems == []
    assert (again.unchanged, again.added) == (there, COUNT - there)
    assert [record.id for record in loader] == sorted(f"doc:note{n}" for n in range(COUNT))
    assert ids(find(loader, f"subject{COUNT - 1}", limit=1)) == [f"doc:note{COUNT - 1}"]

    # The host that only followed has the same, without a restart.
    until(lambda: follower.stats().passages == COUNT)
    until(lambda: ids(find(follower, f"subject{COUNT - 1}", limit=1)) == [f"doc:note{COUNT - 1}"])
    for library in (loader, follower):
        library.close()
