"""`jackfield store` creates stores; in production nothing else does."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

TEXT = '{"text": "hello"}'
GOVERNED = {"JACKFIELD_ALLOW": "fab-*,jackfield-policies,jackfield-host,jackfield-store-sqlite"}
PRODUCTION = {**GOVERNED, "JACKFIELD_DEPLOYMENT": "production"}
CALL = ("call", "echo", TEXT, "--session", "s", "--call-id", "call_123456")


@pytest.fixture
def folder(site: Any) -> Path:
    """Return a deployment with one tool and a persistent store."""
    site.tool("echo")
    assert site.run("build", **GOVERNED).returncode == 0
    working: Path = site.folder.parent
    return working


def stores(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if "jackfield.db" in each.name)


def test_a_store_is_created_once_and_shown(site: Any, folder: Path) -> None:
    path = folder / "jackfield.db"
    done = site.run("store", "create", **PRODUCTION)
    assert (done.returncode, done.stderr) == (0, "")
    store_id = done.stdout.strip().rpartition(" ")[2]
    assert done.stdout == f"created a new store at {path}, with the id {store_id}\n"
    assert site.run(*CALL, **PRODUCTION).returncode == 0
    facts = json.loads(site.run("store", "show", "--json", **PRODUCTION).stdout)
    assert (facts["id"], facts["path"], facts["claims"]) == (store_id, str(path), 1)
    assert facts["bytes"] >= path.stat().st_size
    shown = site.run("store", "show", **PRODUCTION).stdout.splitlines()
    assert shown[0].split() == ["id", store_id]
    assert [line.split()[0] for line in shown] == list(facts)
    again = site.run("store", "create", **PRODUCTION)
    assert again.returncode == 1
    assert again.stderr == (
        f"Error: nothing was created: {path} is already a store, with the id {store_id}\n"
    )


def test_a_backup_of_the_store_takes_its_place(site: Any, folder: Path) -> None:
    path, copy = folder / "jackfield.db", folder / "backups" / "monday.db"
    assert site.run("store", "create", **PRODUCTION).returncode == 0
    assert site.run(*CALL, **PRODUCTION).returncode == 0
    done = site.run("store", "backup", str(copy), **PRODUCTION)
    assert (done.returncode, done.stdout) == (0, f"copied the store {path} to {copy}\n"), done.stderr
    again = site.run("store", "backup", str(copy), **PRODUCTION)
    assert (again.returncode, again.stderr) == (
        1, f"Error: nothing was copied: {copy} exists; choose a new file\n"
    )  # fmt: skip
    for each in stores(folder):
        (folder / each).unlink()
    lost = site.run("store", "backup", str(folder / "other.db"), **PRODUCTION)
    assert lost.returncode == 1
    assert lost.stderr.startswith(f"Error: the store {path} does not exist")
    copy.rename(path)
    # The call has already run: its result comes from the backup.
    assert "echo 1.0.0 replayed, in" in site.run(*CALL, **PRODUCTION).stderr


@pytest.mark.parametrize(
    "command",
    [CALL, ("bans", "list"), ("bans", "lift", "ada"), ("sessions", "list"), ("sessions", "prune"),
     ("sessions", "show", "s"), ("store", "show"), ("store", "backup", "b.db")],
    ids=" ".join,
)  # fmt: skip
def test_no_other_command_creates_a_store_in_production(
    site: Any, folder: Path, command: tuple[str, ...]
) -> None:
    done = site.run(*command, **PRODUCTION)
    assert done.returncode == 1
    assert done.stderr == (
        f"Error: the store {folder / 'jackfield.db'} does not exist; if this is a new deployment, run "
        "`jackfield store create`; otherwise put the file back or check the mount\n"
    )
    assert stores(folder) == []


def test_a_call_does_not_run_again_on_a_new_store_after_the_old_one_was_lost(site: Any, folder: Path) -> None:
    assert site.run("store", "create", **PRODUCTION).returncode == 0
    assert site.run(*CALL, **PRODUCTION).returncode == 0
    (folder / "jackfield.db").unlink()
    lost = site.run(*CALL, **PRODUCTION)
    assert lost.returncode == 1
    assert "put the file back or check the mount" in lost.stderr
    assert stores(folder) == []


def test_a_command_in_development_still_creates_the_store(site: Any, folder: Path) -> None:
    assert site.run(*CALL, **GOVERNED).returncode == 0
    assert stores(folder) == ["jackfield.db"]
    assert site.run("store", "show", **GOVERNED).returncode == 0


def test_commands_that_start_together_in_development_share_one_new_store(site: Any, folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: site.run("call", "echo", TEXT, **GOVERNED), range(4)))
    assert [(each.returncode, each.stdout) for each in done] == [(0, done[0].stdout)] * 4
    facts = json.loads(site.run("store", "show", "--json", **GOVERNED).stdout)
    assert facts["claims"] == 4
    assert stores(folder) == ["jackfield.db"]
    assert not list(folder.glob(".jackfield-*"))


@pytest.mark.parametrize("deployment", ["development", "production"])
def test_a_replaced_store_is_refused_in_every_deployment(site: Any, folder: Path, deployment: str) -> None:
    environ = {**GOVERNED, "JACKFIELD_DEPLOYMENT": deployment}
    assert site.run("store", "create", **environ).returncode == 0
    config = folder / "jackfield.toml"
    config.write_text(f'[stores.sqlite]\nid = "{"0" * 32}"\n')
    refused = site.run(*CALL, **environ)
    assert refused.returncode == 1
    assert f"but [stores.sqlite] requires the id {'0' * 32}: it is not the same store" in refused.stderr
    # A new one would not be the store that is asked for, either.
    (folder / "jackfield.db").unlink()
    assert site.run(*CALL, **environ).returncode == 1
    assert site.run("store", "create", **environ).returncode == 1
    assert stores(folder) == []


def test_invalid_settings_create_no_store(site: Any, folder: Path) -> None:
    (folder / "jackfield.toml").write_text("[stores.sqlite]\nlease = 0\n")
    for command in (CALL, ("store", "create")):
        done = site.run(*command, **GOVERNED)
        assert done.returncode == 1
        assert "[stores.sqlite] lease: expected a number of seconds above 0, got 0" in done.stderr
    assert stores(folder) == []


def test_the_memory_store_is_never_created(site: Any, folder: Path) -> None:
    for command in ("create", "show"):
        done = site.run("store", command, **PRODUCTION, JACKFIELD_STORE="memory")
        assert done.returncode == 1
        assert "this deployment uses the `memory` store" in done.stderr
    assert site.run(*CALL, **PRODUCTION, JACKFIELD_STORE="memory").returncode == 0


def test_a_store_that_need_not_be_created_says_so(site: Any) -> None:
    site.tool("echo")
    site.plugin(
        "fab-keeper",
        "from jackfield import hookimpl\nfrom jackfield.offers import StoreOffer\n"
        "from jackfield.store import MemoryStore\n\n"
        "@hookimpl\ndef jackfield_stores():\n"
        "    return [StoreOffer('keeper', lambda settings: MemoryStore())]\n",
    )
    environ = {**PRODUCTION, "JACKFIELD_STORE": "keeper"}
    assert site.run("build", **environ).returncode == 0
    assert "'keeper' does not need to be created" in site.run("store", "create", **environ).stderr
    assert "'keeper' does not report its identity or size" in site.run("store", "show", **environ).stderr
    assert site.run("call", "echo", TEXT, **environ).returncode == 0
