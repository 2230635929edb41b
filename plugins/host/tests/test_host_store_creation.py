"""A production host starts only with its existing store, and never creates one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from host_harness import HostFolder
from jackfield_testkit.command_server import run_command
from jackfield_testkit.postgres import PostgresServer

PATIENCE = 120
CREATE = "if this is a new deployment, run `jackfield store create`"


def configure(host_folder: HostFolder, deployment: str, store_id: str = "") -> None:
    """Return the settings of a host whose provider gets no request."""
    pinned = f'id = "{store_id}"\n' if store_id else ""
    (host_folder.path / "jackfield.toml").write_text(
        f'registry = {json.dumps(str(host_folder.registry))}\nprovider = "openai"\n'
        f'deployment = "{deployment}"\n'
        '[transports.openai]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "HST_KEY"\n'
        f"[stores.sqlite]\npath = {json.dumps(str(host_folder.store))}\n{pinned}"
        "[host]\nport = 0\n"
    )


def started(host_folder: HostFolder, *arguments: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": str(host_folder.site), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "jackfield_cli", *arguments],
        cwd=host_folder.path, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def refusal(host_folder: HostFolder, *arguments: str) -> str:
    """Run a command that fails; return its error."""
    environ = {**os.environ, "PYTHONPATH": str(host_folder.site)}
    done = run_command(
        arguments or ["serve"], cwd=host_folder.path, env=environ, stderr=subprocess.STDOUT, timeout=PATIENCE
    )
    assert done.returncode == 1, done.stdout
    return done.stdout


@contextmanager
def serving(host_folder: HostFolder) -> Iterator[list[str]]:
    """Start a host; return it with its output, and stop it at the end."""
    with started(host_folder, "serve") as process:
        assert process.stdout
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Open http"):
                break
        try:
            assert process.poll() is None, "".join(lines)
            yield lines
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def files(host_folder: HostFolder) -> dict[str, bytes]:
    return {
        each.name: each.read_bytes() for each in host_folder.path.iterdir() if "jackfield.db" in each.name
    }


def text(path: Path) -> None:
    path.write_text("a diary, not a database\n" * 100)


def another_programs(path: Path) -> None:
    apsw.Connection(str(path)).execute("CREATE TABLE notes (text)").connection.close()


def without_tables(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE gone (x); DROP TABLE gone")
    db.close()


@pytest.mark.parametrize(
    ("put", "sentence"),
    [
        (None, f"jackfield.db does not exist; {CREATE}; otherwise put the file back or check the mount\n"),
        (Path.touch, "jackfield.db is empty and not a store; put the file back or restore a backup"),
        (without_tables, "jackfield.db is empty and not a store; put the file back or restore a backup"),
        (
            text,
            "jackfield.db is not a SQLite database; move the file away, or give the store a different path",
        ),
        (
            another_programs,
            "jackfield.db is another program's SQLite database; give the store a different path",
        ),
    ],
)
def test_a_production_host_without_its_store_does_not_start(
    host_folder: HostFolder, put: Callable[[Path], None] | None, sentence: str
) -> None:
    configure(host_folder, "production")
    if put:
        put(host_folder.store)
    before = files(host_folder)
    said = refusal(host_folder)
    assert sentence in said
    assert said.count(str(host_folder.store)) == 1
    assert files(host_folder) == before


def test_a_store_is_created_once_and_a_lost_store_is_not_replaced(host_folder: HostFolder) -> None:
    configure(host_folder, "production")
    with started(host_folder, "store", "create") as process:
        said, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said.startswith("created a new store at ")) == (0, True)
    with serving(host_folder) as lines:
        assert not any("created a new store" in line for line in lines)
    with serving(host_folder):
        pass
    host_folder.store.unlink()
    assert f"does not exist; {CREATE}" in refusal(host_folder)
    assert files(host_folder) == {}


@pytest.mark.parametrize("deployment", ["development", "production"])
def test_a_host_whose_store_was_replaced_does_not_start(host_folder: HostFolder, deployment: str) -> None:
    mine = host_folder.create_store()
    configure(host_folder, deployment, mine)
    with serving(host_folder):
        pass
    host_folder.store.unlink()
    other = host_folder.create_store()
    said = refusal(host_folder)
    assert f"has the id {other}, but [stores.sqlite] requires the id {mine}: it is not the same store" in said
    host_folder.store.unlink()
    assert "put the file back or check the mount" in refusal(host_folder)
    assert files(host_folder) == {}


def test_a_development_host_creates_its_store_and_logs_it(host_folder: HostFolder) -> None:
    configure(host_folder, "development")
    with serving(host_folder) as lines:
        told = [line for line in lines if "created a new store" in line]
        assert len(told) == 1
        assert f"created a new store at {host_folder.store}, with the id " in told[0]
    with serving(host_folder) as lines:
        assert not any("created a new store" in line for line in lines)


def test_a_missing_store_is_reported_together_with_other_faults(host_folder: HostFolder) -> None:
    configure(host_folder, "production")
    config = host_folder.path / "jackfield.toml"
    config.write_text(config.read_text().replace("port = 0", "prt = 0"))
    said = refusal(host_folder)
    assert "prt" in said
    assert f"does not exist; {CREATE}" in said
    assert files(host_folder) == {}


@pytest.mark.parametrize(
    ("deployment", "right", "wrong"),
    [("production", '"production"', '"produktion"'), ("development", "port = 0", "prt = 0")],
)
def test_a_start_with_invalid_settings_creates_nothing(
    host_folder: HostFolder, deployment: str, right: str, wrong: str
) -> None:
    """A misspelt `production` must not leave an empty store behind."""
    configure(host_folder, deployment)
    config = host_folder.path / "jackfield.toml"
    config.write_text(config.read_text().replace(right, wrong))
    said = refusal(host_folder)
    assert ("produktion" in said) or ("prt" in said)
    assert "does not exist" not in said
    assert files(host_folder) == {}


def test_only_a_host_and_the_store_command_warn_of_a_server_without_a_standby(
    host_folder: HostFolder, postgres: PostgresServer
) -> None:
    configure(host_folder, "development")
    with (host_folder.path / "jackfield.toml").open("a") as file:
        file.write(f'[stores.postgres]\nurl = "{postgres.uri()}"\nschema = "warned"\n')
    path = host_folder.path / "jackfield.toml"
    path.write_text(f'store = "postgres"\n{path.read_text()}')

    def output(*arguments: str) -> str:
        with started(host_folder, *arguments) as process:
            said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        return said

    with serving(host_folder) as lines:
        assert "".join(lines).count("no standby") == 1
    assert "standby" not in output("sessions", "list")
    assert "standby" not in output("hosts")
    assert "no standby" in output("store", "show")
