"""The PostgreSQL server for tests: it starts, crashes, replicates and disappears."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from jackfield_testkit import postgres
from jackfield_testkit.postgres import PostgresServer, embedded_programs


def test_a_killed_server_keeps_what_it_committed() -> None:
    with PostgresServer.temporary() as server:
        server.create_database("kept")
        server.execute("CREATE TABLE t (v int); INSERT INTO t VALUES (7)", database="kept")
        server.kill()
        server.start()
        assert server.execute("SELECT v FROM t", database="kept") == "7"


def test_a_promoted_standby_has_the_data_and_accepts_writes() -> None:
    with PostgresServer.temporary() as primary:
        primary.execute("CREATE TABLE t (v int); INSERT INTO t VALUES (7)")
        with primary.standby(primary.folder.parent / "standby", "sb1") as standby:
            primary.stop("immediate")
            standby.promote()
            standby.execute("INSERT INTO t VALUES (8)")
            assert standby.execute("SELECT v FROM t ORDER BY v").split() == ["7", "8"]


def test_a_temporary_server_leaves_nothing() -> None:
    with PostgresServer.temporary() as server:
        pid, folder = server.pid, server.folder
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_that_cannot_start_says_why() -> None:
    with (
        pytest.raises(RuntimeError, match="no_such_setting"),
        PostgresServer.temporary(settings={"no_such_setting": 1}),
    ):
        pass


def test_programs_below_a_private_folder_are_copied_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(postgres, "_is_public", lambda _: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    programs = embedded_programs()
    assert programs.is_relative_to(tmp_path)
    # These two use a library of the distribution.
    for program in ("initdb", "psql"):
        subprocess.run([programs / program, "--version"], check=True)
    assert embedded_programs() == programs, "copied once"
