"""A host in production starts on the store it was given, and never on a new one that nobody asked for."""

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
from hosting import Workshop

PATIENCE = 120
CREATE = "if this is a new deployment, run `jackfield store create`"


def configure(workshop: Workshop, deployment: str, store_id: str = "") -> None:
    """Settings of a host whose provider is never asked."""
    pinned = f'id = "{store_id}"\n' if store_id else ""
    (workshop.folder / "jackfield.toml").write_text(
        f'registry = {json.dumps(str(workshop.registry))}\nprovider = "openai"\n'
        f'deployment = "{deployment}"\n'
        '[transports.openai]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "HST_KEY"\n'
        f"[stores.sqlite]\npath = {json.dumps(str(workshop.store))}\n{pinned}"
        "[host]\nport = 0\n"
    )


def started(workshop: Workshop, *arguments: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": str(workshop.site), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "jackfield_cli", *arguments],
        cwd=workshop.folder, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def refusal(workshop: Workshop, *arguments: str) -> str:
    """What a command says that does not start."""
    with started(workshop, *(arguments or ("serve",))) as process:
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, said
    return said


@contextmanager
def serving(workshop: Workshop) -> Iterator[list[str]]:
    """A host that has started, and the lines it wrote until then; it has to stop when told to."""
    with started(workshop, "serve") as process:
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


def files(workshop: Workshop) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in workshop.folder.iterdir() if "jackfield.db" in each.name}


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
        (text, "jackfield.db is not a SQLite database; move the file away, or give the store another path"),
        (another_programs, "jackfield.db is another program's SQLite database; give the store another path"),
    ],
)
def test_a_production_host_without_its_store_does_not_start(
    workshop: Workshop, put: Callable[[Path], None] | None, sentence: str
) -> None:
    configure(workshop, "production")
    if put:
        put(workshop.store)
    before = files(workshop)
    said = refusal(workshop)
    assert sentence in said
    assert said.count(str(workshop.store)) == 1
    assert files(workshop) == before


def test_a_store_is_created_once_and_a_lost_one_is_not_replaced(workshop: Workshop) -> None:
    configure(workshop, "production")
    with started(workshop, "store", "create") as process:
        said, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said.startswith("created a new store at ")) == (0, True)
    with serving(workshop) as lines:
        assert not any("created a new store" in line for line in lines)
    with serving(workshop):
        pass
    workshop.store.unlink()
    assert f"does not exist; {CREATE}" in refusal(workshop)
    assert files(workshop) == {}


@pytest.mark.parametrize("deployment", ["development", "production"])
def test_a_host_whose_store_was_replaced_does_not_start(workshop: Workshop, deployment: str) -> None:
    mine = workshop.create_store()
    configure(workshop, deployment, mine)
    with serving(workshop):
        pass
    workshop.store.unlink()
    other = workshop.create_store()
    said = refusal(workshop)
    assert f"has the id {other}, but [stores.sqlite] asks for the id {mine}: it is not the same store" in said
    workshop.store.unlink()
    assert "put the file back or check the mount" in refusal(workshop)
    assert files(workshop) == {}


def test_a_host_in_development_creates_its_store_and_says_so(workshop: Workshop) -> None:
    configure(workshop, "development")
    with serving(workshop) as lines:
        told = [line for line in lines if "created a new store" in line]
        assert len(told) == 1
        assert f"created a new store at {workshop.store}, with the id " in told[0]
    with serving(workshop) as lines:
        assert not any("created a new store" in line for line in lines)


def test_the_missing_store_is_told_together_with_other_mistakes(workshop: Workshop) -> None:
    configure(workshop, "production")
    config = workshop.folder / "jackfield.toml"
    config.write_text(config.read_text().replace("port = 0", "prt = 0"))
    said = refusal(workshop)
    assert "prt" in said
    assert f"does not exist; {CREATE}" in said
    assert files(workshop) == {}


@pytest.mark.parametrize(
    ("deployment", "right", "wrong"),
    [("production", '"production"', '"produktion"'), ("development", "port = 0", "prt = 0")],
)
def test_a_start_that_is_refused_for_its_settings_creates_nothing(
    workshop: Workshop, deployment: str, right: str, wrong: str
) -> None:
    """Whoever misspells `production` must not find an empty store there when it is spelt right."""
    configure(workshop, deployment)
    config = workshop.folder / "jackfield.toml"
    config.write_text(config.read_text().replace(right, wrong))
    said = refusal(workshop)
    assert ("produktion" in said) or ("prt" in said)
    assert "does not exist" not in said
    assert files(workshop) == {}
