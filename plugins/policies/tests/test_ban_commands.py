"""`jackfield bans`, used next to a running host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jackfield_cli import main
from jackfield_policies.access import Bans
from jackfield_store_sqlite import SqliteStore
from jackfield_testkit.site_packages import SitePackages

Jackfield = Callable[..., Result]


@pytest.fixture
def jackfield(site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jackfield:
    """Return a function that runs commands in a deployment of one tool, the policies and a durable store."""
    monkeypatch.chdir(tmp_path)
    site.tool("echo")
    Path("jackfield.toml").write_text(
        'allow = ["fab-*", "jackfield-policies", "jackfield-store-sqlite"]\n'
        '[stores.sqlite]\npath = "kept.db"\n'
    )

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, arguments)

    assert run("build").exit_code == 0
    return run


def test_bans_are_listed_and_lifted_while_a_host_uses_the_store(jackfield: Jackfield) -> None:
    async def main() -> None:
        host = await SqliteStore.open(Path("kept.db"))
        try:
            bans = Bans(host)
            until = await bans.add("ada", 600)
            await bans.add(None, 60, "\x1b[31m")
            await bans.add("session:abc", 60)

            def run(*arguments: str) -> Result:
                done = jackfield("bans", *arguments)
                assert done.exit_code == 0, done.output
                return done

            listed = json.loads((await asyncio.to_thread(run, "list", "--json")).stdout)
            assert [(each["user"], each["session"]) for each in listed] == [
                ("ada", None),
                ("session:abc", None),
                (None, "\x1b[31m"),
            ]
            assert listed[0]["until"] == until
            assert 500 < listed[0]["seconds"] <= 600
            table = (await asyncio.to_thread(run)).stdout
            assert "ada" in table
            assert "session:abc" in table
            assert "\x1b" not in table

            lifted = await asyncio.to_thread(run, "lift", "ada")
            assert lifted.stdout == "the ban on ada is lifted\n"
            assert await bans.remaining("ada") == 0
            assert await bans.remaining(None, "\x1b[31m") > 0
            lifted = await asyncio.to_thread(run, "lift", "--session", "\x1b[31m")
            assert lifted.stdout == "the ban on session '\\x1b[31m' is lifted\n"
            assert await bans.remaining(None, "\x1b[31m") == 0
            answer = await asyncio.to_thread(run, "lift", "session:abc", "--json")
            assert json.loads(answer.stdout) == {"user": "session:abc", "session": None, "lifted": True}
            assert (await asyncio.to_thread(run)).stdout == "no active bans\n"
        finally:
            await host.close()

    asyncio.run(main())


def test_a_lifted_ban_lets_calls_through(jackfield: Jackfield) -> None:
    asked = ("call", "echo", '{"text": "hi"}', "--user", "ada", "--json")

    async def ban() -> None:
        store = await SqliteStore.open(Path("kept.db"))
        await Bans(store).add("ada", 600)
        await store.close()

    asyncio.run(ban())
    refused = json.loads(jackfield(*asked).stdout)
    assert (refused["answer"]["error"]["type"], refused["decisions"]["bans"]) == ("AUTH", "refused")
    assert jackfield("bans", "lift", "ada").exit_code == 0
    assert json.loads(jackfield(*asked).stdout)["answer"]["ok"]


def test_lifting_a_missing_ban_fails(jackfield: Jackfield) -> None:
    done = jackfield("bans", "lift", "ada")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "'ada' is not banned; `jackfield bans list` shows who is" in done.stderr
    assert "session 'ada' is not banned" in jackfield("bans", "lift", "--session", "ada").stderr


@pytest.mark.parametrize("named", [(), ("ada", "--session", "abc"), ("",)])
def test_lifting_needs_either_a_user_or_a_session(jackfield: Jackfield, named: tuple[str, ...]) -> None:
    done = jackfield("bans", "lift", *named)
    assert done.exit_code == 2
    assert "give either USER or --session" in done.stderr


@pytest.mark.parametrize(
    ("name", "reason"),
    [("u" * 3000, "the limit is 1024"), ("ada\udcff", "contains an unpaired surrogate")],
)
def test_an_invalid_user_name_is_reported(jackfield: Jackfield, name: str, reason: str) -> None:
    done = jackfield("bans", "lift", name)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: the key ")
    assert reason in done.stderr


def test_bans_in_memory_cannot_be_listed(jackfield: Jackfield, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JACKFIELD_STORE", "memory")
    done = jackfield("bans", "list")
    assert done.exit_code == 1
    assert "this deployment uses the `memory` store, which no other process can read" in done.stderr


def test_a_missing_registry_is_reported_with_a_remedy(jackfield: Jackfield) -> None:
    Path("tool_registry.json").unlink()
    done = jackfield("bans")
    assert done.exit_code == 1
    assert "jackfield build" in done.stderr


def test_lifting_a_ban_is_audited_with_the_operator(
    jackfield: Jackfield, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("jackfield.toml").open("a") as file:
        file.write('[observers.audit]\npath = "lines.jsonl"\n')
    monkeypatch.setenv(
        "JACKFIELD_ALLOW", "fab-*,jackfield-policies,jackfield-store-sqlite,jackfield-observability"
    )
    monkeypatch.setenv("LOGNAME", "grace")
    assert jackfield("build").exit_code == 0

    async def ban() -> None:
        store = await SqliteStore.open(Path("kept.db"))
        await Bans(store).add("ada", 600)
        await Bans(store).add(None, 600, "abc")
        await store.close()

    asyncio.run(ban())
    assert jackfield("bans", "lift", "ada").exit_code == 0
    assert jackfield("bans", "lift", "--session", "abc").exit_code == 0
    assert jackfield("bans", "lift", "ada").exit_code == 1
    named, nameless = [json.loads(line) for line in Path("lines.jsonl").read_text().splitlines()]
    assert (named["tool"], named["user"], named["ok"]) == ("bans lift", "ada", True)
    assert named["decisions"] == {"bans": "lifted by grace"}
    assert (nameless["user"], nameless["session"]) == (None, "abc")


def test_a_ban_is_not_lifted_without_the_audit(jackfield: Jackfield, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("jackfield.toml").open("a") as file:
        file.write('[observers.audit]\npath = "nowhere/lines.jsonl"\n')
    monkeypatch.setenv(
        "JACKFIELD_ALLOW", "fab-*,jackfield-policies,jackfield-store-sqlite,jackfield-observability"
    )
    assert jackfield("build").exit_code == 0

    async def banned(seconds: float) -> float:
        store = await SqliteStore.open(Path("kept.db"))
        try:
            await Bans(store).add("ada", seconds)
            return await Bans(store).remaining("ada")
        finally:
            await store.close()

    asyncio.run(banned(600))
    refused = jackfield("bans", "lift", "ada")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: [observers.audit] path: ")
    assert asyncio.run(banned(1)) > 500
