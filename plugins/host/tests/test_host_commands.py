"""`jackfield settings`, `sessions` and `key`, as an operator uses them."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import stat
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from host_harness import Client, HostFolder, RunningHost, running_host, scripted_provider
from jackfield.session.session import Session
from jackfield_cli import main
from jackfield_host.logs import redact_setting
from jackfield_host.security.authenticator import Authenticator, RequestInfo
from jackfield_host.settings import HostSettings
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_sessions import archive
from jackfield_sessions.checkpoint import Checkpoint
from jackfield_sessions.events import EventLog
from jackfield_sessions.hub import EventHub
from jackfield_store_sqlite import SqliteStore
from starlette.datastructures import Headers

Jackfield = Callable[..., Result]


@pytest.fixture
def jackfield(host_folder: HostFolder) -> Jackfield:
    """Return a function that runs a command in the folder of the host."""
    (host_folder.path / "jackfield.toml").write_text(
        f'registry = {json.dumps(str(host_folder.registry))}\nprovider = "openai"\n'
        '[transports.openai]\nbase_url = "https://me:pass-word@proxy.example/v1"\n'
        'voice_name = "sk-not-so-secret"\n'
        "[host]\nport = 9000\nmax_sessions = 5\n"
    )
    return lambda *arguments, **options: CliRunner().invoke(main, arguments, **options)


async def script(model: ScriptedModel) -> None:
    while True:
        heard = (await model.hears()).text
        if heard == "look":
            await model.calls(ScriptedCall("hst_look", {"text": "one two"}))
        elif heard == "book":
            await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
        await model.says("Two words.\nNo \x1b[31mmore.")


@asynccontextmanager
async def host_with_session(host_folder: HostFolder) -> AsyncIterator[tuple[RunningHost, Client]]:
    """Run a host with a client that has completed one turn."""
    async with (
        scripted_provider(script) as served,
        running_host(host_folder, served) as host,
        host.client("text") as ada,
    ):
        await ada.say("text", text="look")
        await ada.until_type("turn_complete")
        yield host, ada


async def everything(path: Path) -> list[str]:
    """Return the keys and streams of a store."""
    store = await SqliteStore.open(path)
    try:
        return [*await store.keys(""), *await store.streams("")]
    finally:
        await store.close()


def asked(jackfield: Jackfield, *arguments: str, **options: Any) -> str:
    """Run a command that succeeds; return its output."""
    done = jackfield(*arguments, **options)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_settings_are_shown_with_their_sources(jackfield: Jackfield, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JACKFIELD_HOST_MAX_SESSIONS", "7")
    monkeypatch.setenv("JACKFIELD_DEPLOYMENT", "production")
    told = json.loads(asked(jackfield, "settings", "--json", "--registry", "other.json"))
    assert told["file"] == "jackfield.toml"
    kernel, host = told["settings"]["deployment"], told["settings"]["host"]

    def from_(table: dict[str, Any], name: str) -> tuple[Any, str, Any]:
        return table[name]["value"], table[name]["from"], table[name]["default"]

    assert from_(kernel, "registry") == ("other.json", "--registry", "tool_registry.json")
    assert from_(kernel, "deployment") == ("production", "JACKFIELD_DEPLOYMENT", "development")
    assert from_(kernel, "provider") == ("openai", "jackfield.toml", "auto")
    unnamed = "`sqlite` if `jackfield-store-sqlite` is installed, else `memory`"
    assert from_(kernel, "store") == ("sqlite", "default", unnamed)
    assert from_(host, "max_sessions") == (7, "JACKFIELD_HOST_MAX_SESSIONS", 1000)
    assert from_(host, "port") == (9000, "jackfield.toml", 8765)
    assert from_(host, "drain_seconds") == (30.0, "default", 30.0)
    assert set(host) == {each.name for each in fields(HostSettings)}
    # Plugins are shown with their defaults.
    budgets = told["settings"]["policies.budgets"]
    assert from_(budgets, "voice_calls") == (3, "default", 3)
    assert budgets["voice_calls"]["help"] == "Maximum calls per turn in a voice session; 0 means no limit."
    assert all(each["help"] for table in told["settings"].values() for each in table.values())
    text = asked(jackfield, "settings")
    assert "\n  max_sessions: 7  (from JACKFIELD_HOST_MAX_SESSIONS; default: 1000)\n" in text
    assert f"\n  store: sqlite  (default: {unnamed})\n      The name of the store.\n" in text
    assert "\n  drain_seconds: 30  (default)\n" in text
    assert "[transports.openai]" in text
    assert max(len(line) for line in text.splitlines() if line.startswith(" " * 6)) <= 100


def test_the_meanings_of_settings_fit_a_narrow_terminal(jackfield: Jackfield, tmp_path: Path) -> None:
    wide = asked(jackfield, "settings")
    terminal, end = pty.openpty()
    environ = {**os.environ, "NO_COLOR": "1", "COLUMNS": "60"}
    with subprocess.Popen(
        [sys.executable, "-m", "jackfield_cli", "settings"], cwd=tmp_path, env=environ, stdout=end
    ):
        os.close(end)
        shown = b""
        # The end of a terminal is an error on Linux.
        with suppress(OSError):
            while part := os.read(terminal, 4096):
                shown += part
    os.close(terminal)
    narrow = shown.decode()
    assert narrow.split() == wide.split()
    assert max(len(line.rstrip()) for line in narrow.splitlines() if line.startswith(" " * 6)) <= 60


def test_paths_of_a_settings_file_in_another_folder_are_relative_to_it(
    jackfield: Jackfield, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "host.toml").write_text(
        '[stores.sqlite]\npath = "a.db"\n'
        '[host.jwt]\nalgorithms = ["ES256"]\nkey_file = "jwt.pem"\naudience = "a"\n'
    )

    def paths() -> tuple[Any, Any]:
        told = json.loads(asked(jackfield, "settings", "--json", "--config", "etc/host.toml"))["settings"]
        return told["stores.sqlite"]["path"]["value"], told["host"]["jwt"]["value"]["key_file"]

    assert paths() == (str(tmp_path / "etc" / "a.db"), str(tmp_path / "etc" / "jwt.pem"))
    monkeypatch.setenv("JACKFIELD_HOST_JWT__KEY_FILE", "jwt.pem")
    assert paths()[1] == "jwt.pem"


def test_settings_do_not_show_secrets(jackfield: Jackfield, tmp_path: Path) -> None:
    made = asked(jackfield, "key", "phone", "--user", "ada")
    with (tmp_path / "jackfield.toml").open("a") as file:
        file.write(made)
    for arguments in (["settings"], ["settings", "--json"]):
        said = asked(jackfield, *arguments)
        assert "pass-word" not in said
        assert "not-so-secret" not in said
        assert "proxy.example" in said
        assert tomllib.loads(made)["host"]["keys"]["phone"]["digest"] not in said
        assert "ada" in said


def test_a_setting_that_names_the_location_of_a_secret_is_shown() -> None:
    assert redact_setting("api_key_env", "OPENAI_API_KEY") == "OPENAI_API_KEY"
    assert redact_setting("key_file", "/etc/keys.pem") == "/etc/keys.pem"
    assert redact_setting("secret_env", "OUR_SECRET") == "OUR_SECRET"
    assert redact_setting("x", {"password": "p", "tokens": ["a"], "deep": [{"token": "t"}]}) == {
        "password": "***",
        "tokens": ["***"],
        "deep": [{"token": "***"}],
    }
    assert redact_setting("monkey", "banana") == "banana"
    assert redact_setting("token", None) is None


def test_the_settings_command_reports_invalid_settings(jackfield: Jackfield, tmp_path: Path) -> None:
    (tmp_path / "jackfield.toml").write_text("[host]\nprot = 1\n")
    done = jackfield("settings")
    assert done.exit_code == 1
    assert done.stderr == "Error: [host] prot: unknown setting; did you mean 'port'?\n"


def test_a_created_key_authenticates_its_user(jackfield: Jackfield) -> None:
    done = jackfield("key", "phone-app", "--user", "ada", "--role", "staff", "--role", "ops")
    key = next(line for line in done.stderr.splitlines() if line.startswith("jf_phone-app_"))
    assert key not in done.stdout
    authenticator = Authenticator(HostSettings.load(tomllib.loads(done.stdout)["host"]))
    headers = Headers({"host": "127.0.0.1", "authorization": f"Bearer {key}"})
    identity = authenticator.authenticate(RequestInfo(headers, "http", "127.0.0.1", False))
    assert (identity.user, sorted(identity.roles)) == ("ada", ["ops", "staff"])
    assert jackfield("key", "phone-app", "--user", "ada").stdout != done.stdout


def test_a_key_with_an_invalid_name_is_refused(jackfield: Jackfield) -> None:
    done = jackfield("key", "Phone_App", "--user", "ada")
    assert done.exit_code == 1
    assert "lower-case letters, digits and hyphens" in done.stderr


def test_sessions_are_listed_and_shown_while_the_host_runs(
    host_folder: HostFolder, jackfield: Jackfield
) -> None:
    async def drive() -> None:
        async with host_with_session(host_folder) as (host, ada):
            async with host.client("voice") as ben:
                # A session in which nothing was said is deleted when it ends.
                await ben.say("text", text="hello")
                await ben.say("end")
                await ben.until_closed()
            while len(host.sessions.live) > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert ada.session
            await asyncio.to_thread(look, ada.session, ben.session or {})

    def look(ada: dict[str, Any], ben: dict[str, Any]) -> None:
        second, first = json.loads(asked(jackfield, "sessions", "list", "--json"))
        newest = jackfield("sessions", "list", "--json", "--limit", "1")
        assert [each["id"] for each in json.loads(newest.stdout)] == [second["id"]]
        assert newest.stderr == "1 older sessions are not shown; use --limit to see more\n"
        assert (first["id"], first["user"], first["mode"]) == (ada["session"], "local", "text")
        assert (first["state"], first["turns"], first["active"]) == ("open", 1, True)
        assert first["registry"] == ada["registry"]
        assert (second["id"], second["mode"], second["active"]) == (ben["session"], "voice", False)
        text = asked(jackfield, "sessions", "list", "--active")
        assert ada["session"] in text
        assert ben["session"] not in text
        assert asked(jackfield, "sessions", "list", "--user", "nobody") == "no sessions\n"

        lines = asked(jackfield, "sessions", "show", ada["session"]).splitlines()
        assert lines[0].startswith(f"session {ada['session']}: text, local, open, 1 turn, started ")
        assert [line[22:] for line in lines[2:]] == [
            "user       look",
            'tool       hst_look {"text":"one two"}',
            "tool       hst_look completed",
            "assistant  Two words.",
            r"           No \x1b[31mmore.",
        ]

    asyncio.run(drive())


def test_an_exported_session_is_readable_by_its_owner_only(
    host_folder: HostFolder, jackfield: Jackfield
) -> None:
    async def drive() -> str:
        async with host_with_session(host_folder) as (_, ada):
            await ada.say("text", text="book")
            await ada.until_type("turn_complete", 2)
            assert ada.session
            return str(ada.session["session"])

    session = asyncio.run(drive())
    asked(jackfield, "sessions", "export", session, "-o", "out.jsonl")
    written = host_folder.path / "out.jsonl"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    head, *lines = [json.loads(line) for line in written.read_text().splitlines()]
    assert (head["type"], head["id"], head["turns"]) == ("session", session, 2)
    said = [(line["speaker"], line["text"]) for line in lines if line["type"] == "message"]
    assert said[0] == ("user", "look")
    assert said[1] == ("assistant", "Two words.\nNo \x1b[31mmore.")
    kinds = [line["type"] for line in lines]
    assert kinds[:4] == ["message", "tool_start", "tool_complete", "message"]
    assert "confirmation_required" in kinds
    assert all("token" not in line for line in lines)
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)

    done = jackfield("sessions", "export", session, "-o", "out.jsonl")
    assert (done.exit_code, done.stderr) == (1, "Error: out.jsonl already exists; choose a different name\n")
    markdown = asked(jackfield, "sessions", "export", session, "--format", "markdown")
    assert markdown.startswith(f"# look\n\nSession {session}: ")
    assert "\n> Two words.\n> No \\x1b[31mmore.\n" in markdown
    assert "\n> asked for approval: Book a table?\n" in markdown
    assert "\n> hst_book is waiting for approval\n" in markdown
    shown = asked(jackfield, "sessions", "show", session)
    assert "  tool       hst_book is waiting for approval\n" in shown
    assert "failed" not in shown


def test_a_session_is_found_by_a_prefix_of_its_id(host_folder: HostFolder, jackfield: Jackfield) -> None:
    async def keep() -> None:
        store = await SqliteStore.open(host_folder.path / "jackfield.db")
        for session_id in ("feed0001aaaa", "feed0001bbbb", "feed0002"):
            await Session("text", "1.0", session_id=session_id).save(store)
        await store.close()

    asyncio.run(keep())
    for command in ("show", "export"):
        assert "feed0002" in asked(jackfield, "sessions", command, "feed0002"[:8])
        assert "feed0001bbbb" in asked(jackfield, "sessions", command, "feed0001b")
        done = jackfield("sessions", command, "feed0001")
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == (
            "Error: 2 session ids begin with 'feed0001'; give a longer prefix: feed0001aaaa, feed0001bbbb\n"
        )
    assert jackfield("sessions", "prune", "--session", "feed0001b", "--yes").exit_code == 1, "named in full"


def test_an_unknown_session_is_reported(host_folder: HostFolder, jackfield: Jackfield) -> None:
    for command in ("show", "export"):
        done = jackfield("sessions", command, "feed")
        assert done.exit_code == 1
        assert "there is no session 'feed' in the store" in done.stderr
    done = jackfield("sessions", "prune", "--session", "feed", "--yes")
    assert done.exit_code == 1


def test_the_transcript_of_a_session_in_another_format_is_shown_and_deleted(
    host_folder: HostFolder, jackfield: Jackfield
) -> None:
    async def drive() -> str:
        async with host_with_session(host_folder) as (_, ada):
            assert ada.session
            session_id = str(ada.session["session"])
        store = await SqliteStore.open(host_folder.path / "jackfield.db")
        # What a version before the formats had a number saved.
        for key in await store.keys(f"session/{session_id}"):
            saved = json.loads(await store.get(key) or b"")
            del saved["format"]
            saved["began"] = saved.pop("openedAt")
            await store.put(key, json.dumps(saved).encode())
        await store.close()
        return session_id

    session = asyncio.run(drive())
    (listed,) = json.loads(asked(jackfield, "sessions", "list", "--json"))
    assert (listed["id"], listed["state"], listed["active"]) == (session, "expired", False)
    assert "assistant  Two words." in asked(jackfield, "sessions", "show", session)
    assert '"text":"look"' in asked(jackfield, "sessions", "export", session)
    asked(jackfield, "sessions", "prune", "--session", session, "--yes")
    assert asked(jackfield, "sessions", "list") == "no sessions\n"


def test_an_in_memory_store_has_no_sessions_to_list(
    jackfield: Jackfield, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JACKFIELD_STORE", "memory")
    done = jackfield("sessions", "list")
    assert done.exit_code == 1
    assert "which no other process can read" in done.stderr


def test_a_session_is_deleted_after_confirmation_and_its_host_releases_it(
    host_folder: HostFolder, jackfield: Jackfield
) -> None:
    async def drive() -> str:
        async with host_with_session(host_folder) as (host, ada):
            await ada.say("text", text="book")
            await ada.until_type("turn_complete", 2)
            async with host.client("text") as ben:
                await ben.say("text", text="look")
                await ben.until_type("turn_complete")
                assert ada.session
                assert ben.session
                await asyncio.to_thread(delete, ada.session["session"])
                assert (await ada.until_closed())[0] == 4007
                async with host.connected("text") as again:
                    await again.say("resume", token=ada.token, lastEvent=0)
                    assert (await again.until_closed())[0] == 4007
                return str(ben.session["session"])

    def delete(session: str) -> None:
        done = jackfield("sessions", "prune", "--session", session, input="n\n")
        assert done.exit_code == 1
        assert session in asked(jackfield, "sessions", "list")
        said = asked(jackfield, "sessions", "prune", "--session", session, input="y\n")
        assert "Delete 1 session permanently?" in said

    other = asyncio.run(drive())
    assert [each["id"] for each in json.loads(asked(jackfield, "sessions", "list", "--json"))] == [other]
    elsewhere = ("readiness/", "call/", "recent/")
    left = asyncio.run(everything(host_folder.path / "jackfield.db"))
    assert {name.rpartition("/")[2] for name in left if not name.startswith(elsewhere)} == {other}


def test_sessions_without_recent_messages_are_deleted(host_folder: HostFolder, jackfield: Jackfield) -> None:
    async def drive() -> None:
        async with host_with_session(host_folder):
            pass

    asyncio.run(drive())
    assert (
        asked(jackfield, "sessions", "prune", "--older-than", "1h", "--yes")
        == "no session is older than that\n"
    )
    assert "deleted 1 session" in asked(jackfield, "sessions", "prune", "--older-than", "0m", "--yes")
    assert asked(jackfield, "sessions", "list") == "no sessions\n"
    done = jackfield("sessions", "prune", "--older-than", "long")
    assert "'long' is not an age; use a value such as 90m, 12h or 3d" in done.stderr


def test_expired_entries_are_removed(host_folder: HostFolder, jackfield: Jackfield) -> None:
    async def drive() -> None:
        store = await SqliteStore.open(host_folder.path / "jackfield.db")
        await store.put("brief", b"", ttl=0.0)
        await store.close()

    asyncio.run(drive())
    assert asked(jackfield, "sessions", "prune") == "removed 1 expired entry\n"


def test_a_transcript_outlives_its_session_and_names_its_user(host_folder: HostFolder) -> None:
    moment = 1_800_000_000.0

    async def drive() -> list[archive.StoredSession]:
        nonlocal moment
        from jackfield.store import MemoryStore

        store = MemoryStore(lambda: moment)
        session = Session("voice", "1.0", user="ada", opened_at=store.now())
        await session.save(store)
        session.begin_turn()
        checkpoint = Checkpoint(session, store)
        hub = EventHub(EventLog(session, store), on_message=checkpoint.mark_published)
        session.publish = hub.publish
        await checkpoint.add_message("user", "remember this")
        await hub.flush()
        moment += 25 * 3600
        (kept,) = await archive.all_sessions(store)
        assert not kept.active
        await archive.delete(store, session.id)
        assert await archive.all_sessions(store) == []
        return [kept]

    (kept,) = asyncio.run(drive())
    assert (kept.user, kept.mode, kept.state, kept.turns) == ("ada", "voice", "expired", 1)
