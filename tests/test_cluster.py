"""The cluster of `nox -s cluster`: a small chaos run finds no fault, and its parts work as described."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from cluster import __main__ as command
from cluster import chaos, report
from cluster.chaos import Result, Scale
from cluster.cluster import running
from cluster.proxy import PROGRAM, Proxy
from cluster.view import HostFigures, View
from faults.checks import DOUBLED, LOST, Fault
from faults.database import Database
from faults.record import CallRecord, Statement

PAGE = report.PAGE

needs_nginx = pytest.mark.skipif(PROGRAM is None, reason="nginx is not installed (Debian: nginx-light)")


@needs_nginx
def test_nothing_is_lost_or_doubled_while_hosts_and_the_database_are_killed(tmp_path: Path) -> None:
    scale = Scale(calls=60, deliveries=4, kills=3, crashes=1, failovers=1, callers=6, seed=3)

    async def drive() -> Result:
        async with running(tmp_path, hosts=3, store="postgres") as cluster:
            return await chaos.run(cluster, scale, print)

    result = asyncio.run(drive())

    assert result.faults == []
    assert (result.strikes["kill"], result.strikes["crash"], result.strikes["failover"]) == (3, 1, 1)
    assert len(result.calls) == 60
    assert all(call.deliveries >= 4 for call in result.calls)
    # Every call ran, unless it is in doubt.
    doubtful = sum(call.last_state() == "in_doubt" for call in result.calls)
    assert 60 - doubtful <= result.effects <= 60
    assert result.probes > 0


def test_a_database_fails_over_twice_and_keeps_what_was_committed() -> None:
    with Database.temporary() as database:
        url = "jackfield"
        database.primary.execute("CREATE TABLE kept (n int)", database=url)
        ports = []
        for number in range(2):
            database.primary.execute(f"INSERT INTO kept VALUES ({number})", database=url)
            ports.append(database.primary.port)
            database.fail_over()
        database.crash()
        assert database.primary.execute("SELECT n FROM kept ORDER BY n", database=url) == "0\n1"
        assert ports[0] == database.primary.port != ports[1]
        assert database.standby is not None
        assert database.standby.execute("SELECT pg_is_in_recovery()") == "t"


@needs_nginx
def test_the_command_shows_the_cluster_and_stops_everything_at_a_signal(tmp_path: Path) -> None:
    arguments = ["--store", "sqlite", "--hosts", "2", "--keep", str(tmp_path / "kept")]
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "cluster", *arguments],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)}, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout
        lines: list[str] = []
        while not lines or "host 2: " not in lines[-1]:
            line = process.stdout.readline()
            assert line, lines
            lines.append(line)
        said = "".join(lines)
        assert "cluster   http://127.0.0.1:" in said
        assert "host 1: healthy, 0 sessions, 0.0 calls/s" in said
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 0
        # The command is the leader of its process group, and nothing of the group is left.
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    finally:
        process.kill()
        process.communicate()


def test_the_view_prints_lines_for_a_file_and_replaces_them_on_a_terminal() -> None:
    hosts = [HostFigures(1, 8765, "healthy", 3, 10.0), HostFigures(2, 8766, "down")]
    later = [hosts[0]._replace(calls=30.0), hosts[1]]
    plain = io.StringIO()
    view = View(None, plain)  # type: ignore[arg-type]
    view.show(hosts, 100.0)
    view.show(later, 102.0)
    assert plain.getvalue().splitlines()[1] == (
        "host 1: healthy, 3 sessions, 10.0 calls/s | host 2: down, 0 sessions, 0.0 calls/s"
    )

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    view = View(None, terminal)  # type: ignore[arg-type]
    view.show(hosts, 100.0)
    view.show(later, 102.0)
    assert "\x1b[4A" in terminal.getvalue()
    assert terminal.getvalue().count("sessions") == 2


def test_the_rows_of_a_result_count_what_must_be_zero() -> None:
    now = time.monotonic()
    call = CallRecord("c", "k", "fault_note", 0, 0, "none")
    call.statements.append(Statement("execute", 1, now, now, "done"))
    result = Result(
        Scale(seed=9), 4, "postgres", calls=[call], strikes=Counter(kill=2),
        faults=[Fault(DOUBLED, "c", "twice"), Fault(LOST, "c", "gone")],
    )  # fmt: skip
    rows = dict(result.rows())
    assert (rows["kills of hosts"], rows["calls with an acknowledged outcome"]) == (2, 1)
    assert (rows["effects doubled"], rows["acknowledged outcomes lost"], rows["untrue answers"]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (["--hosts", "0"], "at least one host"),
        (["--kills", "-1"], "must not be negative"),
        (["--callers", "0"], "at least 1"),
        (["--store", "memory"], "invalid choice"),
    ],
)
def test_invalid_options_are_rejected(
    wrong: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.parse_options(wrong)
    assert complaint in capsys.readouterr().err


def test_options_override_the_size_of_a_campaign() -> None:
    options = command.parse_options(["--campaign", "--kills", "5", "--seed", "7"])
    scale = command.scale_of(options)
    assert (options.hosts, scale.calls, scale.kills, scale.crashes, scale.seed) == (4, 10_000, 5, 20, 7)


@needs_nginx
def test_nginx_accepts_the_configuration_of_the_cluster(tmp_path: Path) -> None:
    assert PROGRAM
    file = Proxy(tmp_path, [9001, 9002], {}).configuration()
    done = subprocess.run(
        [PROGRAM, "-t", "-e", str(tmp_path / "early.log"), "-c", str(file)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr
    assert "server 127.0.0.1:9002 max_fails=1" in (tmp_path / "site.conf").read_text()


def test_the_page_shows_a_complete_campaign_without_faults() -> None:
    section = PAGE.read_text("utf-8").partition(report.BEGIN)[2].partition(report.END)[0]
    rows = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE))
    assert int(rows["calls"]) >= 10_000
    assert int(rows["deliveries"]) >= 100_000
    assert int(rows["kills of hosts"]) >= 200
    assert int(rows["immediate shutdowns and restarts of the database"]) >= 20
    assert int(rows["promotions of a synchronous standby"]) >= 10
    zero = ("effects doubled", "acknowledged outcomes lost", "untrue answers", "other faults")
    assert {name: rows[name] for name in zero} == dict.fromkeys(zero, "0")
