"""`/sessions` and transcripts: users see their own sessions, operators see all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from host_harness import HostFolder, RunningHost, running_host, scripted_provider, wait_until
from http_client import http_client
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.store import MemoryStore
from jackfield_host.security.api_keys import digest
from jackfield_host.transcripts import as_markdown
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_sessions import archive
from jackfield_sessions.archive import StoredSession

KEYS = {name: f"jf_{name}_{'x' * 43}" for name in ("ada", "bob", "ops")}


async def chatty(model: ScriptedModel) -> None:
    await model.hears()
    await model.calls(ScriptedCall("hst_look", {"text": "one two"}))
    await model.says("Two *words*.")


def keys() -> dict[str, Any]:
    roles = {"ops": ["operator"]}
    return {
        name: {"digest": digest(key), "user": name, "roles": roles.get(name, [])}
        for name, key in KEYS.items()
    }


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[name]}"}


async def chat(client: httpx.AsyncClient, text: str) -> str:
    """Complete a turn; return the id of its session."""
    answer = await client.post("/chat", json={"message": text}, headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["session"])


def run(
    host_folder: HostFolder, test: Callable[[RunningHost], Awaitable[None]], scripts: int = 1, **options: Any
) -> None:
    async def main() -> None:
        async with (
            scripted_provider(*[chatty] * scripts) as served,
            running_host(host_folder, served, **options) as host,
        ):
            await test(host)

    asyncio.run(main())


def test_sessions_are_listed_latest_first(host_folder: HostFolder) -> None:
    async def test(host: RunningHost) -> None:
        async with http_client(host) as ada:
            empty = (await ada.get("/sessions")).json()
            assert empty == {"allUsers": True, "complete": True, "sessions": []}
            first = await chat(ada, "hello")
            second = await chat(ada, "again")
            # A session with only a client's call is not listed.
            await ada.post("/execute/hst_look", json={"arguments": {"text": "a"}})
            told = (await ada.get("/sessions")).json()
            assert [each["session"] for each in told["sessions"]] == [second, first]
            newest = told["sessions"][0]
            assert (newest["user"], newest["mode"], newest["turns"]) == ("local", "text", 1)
            assert (newest["live"], newest["connected"]) == (True, False)
            some = (await ada.get("/sessions?limit=1")).json()
            assert [each["session"] for each in some["sessions"]] == [second]
            assert not some["complete"]

    run(host_folder, test, 2)


def test_a_live_session_is_listed_with_its_current_state(host_folder: HostFolder) -> None:
    async def test(host: RunningHost) -> None:
        async with http_client(host) as ada, host.client("text") as client:
            await client.say("text", text="hello")
            await client.until_type("turn_complete")
            (one,) = (await ada.get("/sessions")).json()["sessions"]
            assert (one["connected"], one["state"]) == (True, "ready")
            await client.say("end")
            await client.until_closed()
            (one,) = (await ada.get("/sessions")).json()["sessions"]
            assert (one["live"], one["state"]) == (False, "ended")

    run(host_folder, test)


def test_an_ended_session_is_listed_as_ended_before_its_host_removes_it(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(host: RunningHost) -> None:
        removing = asyncio.Event()
        end_session = Runtime.end_session

        async def end_later(runtime: Runtime, session: Session) -> None:
            await removing.wait()
            await end_session(runtime, session)

        monkeypatch.setattr(Runtime, "end_session", end_later)
        async with http_client(host) as ada, host.client("text") as client:
            await client.say("text", text="hello")
            await client.until_type("turn_complete")
            await client.say("end")
            await client.until_closed()
            (one,) = (await ada.get("/sessions")).json()["sessions"]
            assert host.sessions.live
            assert (one["live"], one["connected"], one["state"]) == (False, False, "ended")
            removing.set()

    run(host_folder, test)


def test_the_end_of_a_session_is_saved_before_clients_are_told(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is told of the end may ask another host, which reads the store."""

    async def test(host: RunningHost) -> None:
        order: list[str] = []
        store = host.sessions.runtime.store
        put = store.put

        async def noted_put(key: str, value: bytes, *, ttl: float | None = None) -> None:
            await put(key, value, ttl=ttl)
            if key.startswith("session/") and json.loads(value)["state"] == "terminated":
                order.append("saved")

        monkeypatch.setattr(store, "put", noted_put)
        async with host.client("text") as client:
            (live,) = host.sessions.live.values()

            def listen(kind: str, fields: Any) -> None:
                if kind == "session_status" and not fields["active"]:
                    order.append("told")

            with live.hub.listening(listen):
                await client.say("end")
                await client.until_closed()
        assert order[:2] == ["saved", "told"]

    run(host_folder, test)


def test_a_transcript_is_available_in_every_format(host_folder: HostFolder) -> None:
    async def test(host: RunningHost) -> None:
        async with http_client(host) as ada:
            session = await chat(ada, "How many?")
            path = f"/sessions/{session}/transcript"
            told = (await ada.get(path)).json()
            assert told["session"]["session"] == session
            said = [(each["speaker"], each["text"]) for each in told["lines"] if each["type"] == "message"]
            assert said == [("user", "How many?"), ("assistant", "Two *words*.")]
            assert "tool_complete" in [each["type"] for each in told["lines"]]

            markdown = await ada.get(path, params={"format": "markdown"})
            assert markdown.headers["content-disposition"] == f'attachment; filename="session-{session}.md"'
            assert markdown.headers["x-content-type-options"] == "nosniff"
            assert "> How many?" in markdown.text
            lines = (await ada.get(path, params={"format": "jsonl"})).text.splitlines()
            assert json.loads(lines[0])["id"] == session
            assert len(lines) == len(told["lines"]) + 1
            assert (await ada.get(path, params={"format": "pdf"})).status_code == 400
            for strange in ("0" * 32, "..%2f..", "%00"):
                assert (await ada.get(f"/sessions/{strange}/transcript")).status_code == 404

    run(host_folder, test)


def test_a_conversation_has_a_title_that_can_be_changed_and_found(host_folder: HostFolder) -> None:
    async def test(host: RunningHost) -> None:
        async with http_client(host) as ada:
            long = await chat(ada, f"Which lamps\n are in stock? {'Tell me more. ' * 9}")
            named = await chat(ada, "hello")
            title = f"/sessions/{named}/title"
            changed = await ada.post(title, json={"title": " Photo  room "})
            assert (changed.status_code, changed.json()["title"]) == (200, "Photo room")
            for wrong in ("", "  ", "x" * 201):
                assert (await ada.post(title, json={"title": wrong})).status_code == 400

            async def found(**query: str) -> list[str]:
                told = (await ada.get("/sessions", params=query)).json()
                return [each["title"] for each in told["sessions"]]

            short = "Which lamps are in stock? Tell me more. Tell me more. Tell…"
            assert await found() == ["Photo room", short]
            assert await found(search="LAMPS which") == [short]
            assert await found(search="photo") == ["Photo room"]
            assert await found(search="hello words") == ["Photo room"]
            assert await found(search="lamps photo") == []
            assert (await ada.get("/sessions", params={"search": "x" * 201})).status_code == 400

            assert (await ada.post(f"/sessions/{long}/delete")).status_code == 200
            assert (await ada.get(f"/sessions/{long}/transcript")).status_code == 404
            assert await found() == ["Photo room"]

    run(host_folder, test, 2)


def test_a_session_in_which_nothing_was_said_is_not_kept(host_folder: HostFolder) -> None:
    async def test(host: RunningHost) -> None:
        async with http_client(host) as ada, host.client("text") as client:
            (one,) = (await ada.get("/sessions")).json()["sessions"]
            assert (one["live"], one["title"]) == (True, None)
            for change in ("token", "title", "delete"):
                refused = await ada.post(f"/sessions/{one['session']}/{change}", json={"title": "a"})
                assert refused.status_code == 404
            await client.say("end")
            await client.until_closed()
            await wait_until(lambda: not host.sessions.live)
            assert (await ada.get("/sessions")).json()["sessions"] == []
            assert (await ada.get(f"/sessions/{one['session']}/transcript")).status_code == 404

    run(host_folder, test)


def test_only_its_user_continues_renames_or_deletes_a_conversation(host_folder: HostFolder) -> None:
    async def test(host: RunningHost) -> None:
        async with (
            http_client(host, **bearer("ada")) as ada,
            http_client(host, **bearer("bob")) as bob,
            http_client(host, **bearer("ops")) as ops,
        ):
            hers = await chat(ada, "mine")
            for other in (bob, ops):
                for change in ("token", "title", "delete"):
                    refused = await other.post(f"/sessions/{hers}/{change}", json={"title": "a"})
                    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_session")
            mine = (await ops.get("/sessions", params={"user": "me"})).json()
            assert (mine["allUsers"], mine["sessions"]) == (False, [])
            (one,) = (await ada.get("/sessions")).json()["sessions"]
            assert one["title"] == "mine"

    run(host_folder, test, keys=keys())


def test_only_operators_read_the_transcripts_of_other_users(host_folder: HostFolder) -> None:
    async def test(host: RunningHost) -> None:
        async with (
            http_client(host, **bearer("ada")) as ada,
            http_client(host, **bearer("bob")) as bob,
            http_client(host, **bearer("ops")) as ops,
            http_client(host) as nobody,
        ):
            hers, his = await chat(ada, "mine"), await chat(bob, "his")
            own = (await ada.get("/sessions")).json()
            assert not own["allUsers"]
            assert [each["session"] for each in own["sessions"]] == [hers]
            assert (await ada.get(f"/sessions/{hers}/transcript")).status_code == 200
            foreign = await ada.get(f"/sessions/{his}/transcript")
            unknown = await ada.get(f"/sessions/{'0' * 32}/transcript")
            assert foreign.status_code == unknown.status_code == 404
            assert foreign.json() == unknown.json(), "it must not tell whether there is one"

            everything = (await ops.get("/sessions")).json()
            assert everything["allUsers"]
            assert {each["user"] for each in everything["sessions"]} == {"ada", "bob"}
            assert "his" in (await ops.get(f"/sessions/{his}/transcript")).text
            assert (await nobody.get("/sessions")).status_code == 401

    run(host_folder, test, 2, keys=keys())


@pytest.mark.parametrize("path", ["/audit", "/stats", "/metrics"])
def test_statistics_and_audit_require_the_operator_role(host_folder: HostFolder, path: str) -> None:
    async def test(host: RunningHost) -> None:
        async with http_client(host, **bearer("ada")) as ada, http_client(host, **bearer("ops")) as ops:
            refused = await ada.get(path)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_operator")
            assert (await ops.get(path)).status_code == 200

    run(host_folder, test, 0, keys=keys())


@pytest.mark.parametrize("limit", ["0", "501", "-1", "x", "", "1e2", "٣"])
def test_an_invalid_limit_is_refused(host_folder: HostFolder, limit: str) -> None:
    async def test(host: RunningHost) -> None:
        async with http_client(host) as ada:
            for path in ("/sessions", "/audit"):
                refused = await ada.get(path, params={"limit": limit})
                assert refused.status_code == 400
                assert "1 to 500" in refused.json()["error"]["message"]

    run(host_folder, test, 0)


def test_the_search_for_a_users_sessions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sought:
        def __init__(self, number: int, user: str) -> None:
            self.id, self.user = f"{number:032x}", user

    async def main() -> None:
        store = MemoryStore()
        monkeypatch.setattr(archive, "MAX_NOTES", 5)
        await archive.note_session(store, Sought(1, "ada"))  # type: ignore[arg-type]
        for number in range(2, 10):
            await archive.note_session(store, Sought(number, "bob"))  # type: ignore[arg-type]
        found = await archive.recent_sessions(store, 10, "ada")
        assert found == ([], False)

    asyncio.run(main())


@pytest.mark.parametrize("state", [archive.ENDED, archive.EXPIRED])
def test_a_host_gets_time_to_remove_a_session_that_is_deleted_after_its_end(
    monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """The end is saved before the host's last writes; another version may have saved the session."""

    async def main() -> None:
        store = MemoryStore()
        monkeypatch.setattr(archive, "DELETE_SECONDS", 0.2)
        owner = f"{archive.LIVE}/ada/s1/h1"
        await store.put(owner, b"{}")
        ended = StoredSession("s1", "ada", "text", state, 0.0, 0.0, None, 1, "hello")
        deleting = asyncio.create_task(archive.delete_all(store, [ended]))
        await asyncio.sleep(0.05)
        assert await archive.deleted(store) == ["s1"]
        await store.put(f"{archive.SESSION}s1", b"{}")
        await store.delete(owner)
        await deleting
        assert await archive.ids_with_prefix(store, "") == []
        assert await archive.deleted(store) == []

    asyncio.run(main())


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("in_doubt", "hst_note is in doubt: it may or may not have taken effect"),
        ("expired", "hst_note was not approved in time"),
        ("never_run", "hst_note was not run: the host stopped before the call took effect"),
        ("unknown", "hst_note has an unknown outcome"),
        (None, "hst_note failed: As asked."),
    ],
)
def test_a_transcript_reports_only_failed_calls_as_failed(state: str | None, words: str) -> None:
    session = StoredSession("s" * 32, "ada", "text", "open", 1.0, 2.0, "1", 1, "Hello")
    error = {"type": "tool_error", "tool": "hst_note", "errorType": "INTERNAL", "message": "As asked."}
    line = {**error, "at": 1.0, **({"state": state} if state else {})}
    assert f"> {words}" in list(as_markdown(session, [line]))


@pytest.mark.parametrize(
    ("state", "words"), [("no_call", "hst_note was not called"), ("declined", "hst_note was declined")]
)
def test_a_transcript_says_why_a_claim_is_unbacked(state: str, words: str) -> None:
    session = StoredSession("s" * 32, "ada", "text", "open", 1.0, 2.0, "1", 1, "Hello")
    claims = [{"tool": "hst_note", "text": "I noted it", "state": state}]
    line = {"type": "message", "at": 1.0, "speaker": "assistant", "text": "Noted.", "unbackedClaims": claims}
    assert f"Noted. [unbacked claim: {words}]" in "\n".join(as_markdown(session, [line]))
