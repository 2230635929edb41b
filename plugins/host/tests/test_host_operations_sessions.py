"""`/sessions` and transcripts: one's own to everybody, all to whoever runs the host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from asking import asking
from hosting import Hosted, Workshop, hosted, provided
from jackfield.store import MemoryStore
from jackfield_host.security.keys import digest
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
    """Hold a turn; the id of its session."""
    answer = await client.post("/chat", json={"message": text}, headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["session"])


def run(
    workshop: Workshop, test: Callable[[Hosted], Awaitable[None]], scripts: int = 1, **options: Any
) -> None:
    async def main() -> None:
        async with provided(*[chatty] * scripts) as served, hosted(workshop, served, **options) as host:
            await test(host)

    asyncio.run(main())


def test_conversations_are_listed_the_latest_first(workshop: Workshop) -> None:
    async def test(host: Hosted) -> None:
        async with asking(host) as ada:
            empty = (await ada.get("/sessions")).json()
            assert empty == {"everybodys": True, "complete": True, "sessions": []}
            first = await chat(ada, "hello")
            second = await chat(ada, "again")
            # A call alone is no conversation.
            await ada.post("/execute/hst_look", json={"arguments": {"text": "a"}})
            told = (await ada.get("/sessions")).json()
            assert [each["session"] for each in told["sessions"]] == [second, first]
            newest = told["sessions"][0]
            assert (newest["user"], newest["mode"], newest["turns"]) == ("local", "text", 1)
            assert (newest["here"], newest["heard"]) == (True, False)
            some = (await ada.get("/sessions?limit=1")).json()
            assert [each["session"] for each in some["sessions"]] == [second]
            assert not some["complete"]

    run(workshop, test, 2)


def test_a_conversation_that_goes_on_is_told_as_it_is(workshop: Workshop) -> None:
    async def test(host: Hosted) -> None:
        async with asking(host) as ada, host.client("text") as client:
            await client.say("text", text="hello")
            await client.until_type("turn_complete")
            (one,) = (await ada.get("/sessions")).json()["sessions"]
            assert (one["heard"], one["state"]) == (True, "ready")
            await client.say("end")
            await client.until_closed()
            (one,) = (await ada.get("/sessions")).json()["sessions"]
            assert (one["here"], one["state"]) == (False, "ended")

    run(workshop, test)


def test_a_transcript_in_every_form(workshop: Workshop) -> None:
    async def test(host: Hosted) -> None:
        async with asking(host) as ada:
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

    run(workshop, test)


def test_nobody_reads_what_others_said_but_an_operator(workshop: Workshop) -> None:
    async def test(host: Hosted) -> None:
        async with (
            asking(host, **bearer("ada")) as ada,
            asking(host, **bearer("bob")) as bob,
            asking(host, **bearer("ops")) as ops,
            asking(host) as nobody,
        ):
            hers, his = await chat(ada, "mine"), await chat(bob, "his")
            own = (await ada.get("/sessions")).json()
            assert not own["everybodys"]
            assert [each["session"] for each in own["sessions"]] == [hers]
            assert (await ada.get(f"/sessions/{hers}/transcript")).status_code == 200
            foreign = await ada.get(f"/sessions/{his}/transcript")
            unknown = await ada.get(f"/sessions/{'0' * 32}/transcript")
            assert foreign.status_code == unknown.status_code == 404
            assert foreign.json() == unknown.json(), "it must not tell whether there is one"

            everything = (await ops.get("/sessions")).json()
            assert everything["everybodys"]
            assert {each["user"] for each in everything["sessions"]} == {"ada", "bob"}
            assert "his" in (await ops.get(f"/sessions/{his}/transcript")).text
            assert (await nobody.get("/sessions")).status_code == 401

    run(workshop, test, 2, keys=keys())


@pytest.mark.parametrize("path", ["/audit", "/stats", "/metrics"])
def test_figures_and_audit_are_an_operators(workshop: Workshop, path: str) -> None:
    async def test(host: Hosted) -> None:
        async with asking(host, **bearer("ada")) as ada, asking(host, **bearer("ops")) as ops:
            refused = await ada.get(path)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_operator")
            assert (await ops.get(path)).status_code == 200

    run(workshop, test, 0, keys=keys())


@pytest.mark.parametrize("limit", ["0", "501", "-1", "x", "", "1e2", "٣"])
def test_a_limit_that_is_none_is_refused(workshop: Workshop, limit: str) -> None:
    async def test(host: Hosted) -> None:
        async with asking(host) as ada:
            for path in ("/sessions", "/audit"):
                refused = await ada.get(path, params={"limit": limit})
                assert refused.status_code == 400
                assert "1 to 500" in refused.json()["error"]["message"]

    run(workshop, test, 0)


def test_a_user_is_not_looked_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("in_doubt", "hst_note is in doubt: it may or may not have taken effect"),
        ("expired", "hst_note was not approved in time"),
        ("never_run", "hst_note was not run: the host stopped before it took effect"),
        (None, "hst_note failed: As asked."),
    ],
)
def test_a_transcript_says_failed_only_of_calls_that_failed(state: str | None, words: str) -> None:
    session = StoredSession("s" * 32, "ada", "text", "open", 1.0, 2.0, "1", 1)
    error = {"type": "tool_error", "tool": "hst_note", "errorType": "INTERNAL", "message": "As asked."}
    line = {**error, "at": 1.0, **({"state": state} if state else {})}
    assert f"> {words}" in list(as_markdown(session, [line]))
