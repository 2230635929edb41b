"""`GET /session` and `POST /sdp`: a browser calls the provider itself, and the host stands beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from asking import NAMED, asking
from hosting import Hosted, Provider, Workshop, hosted, provided
from jackfield_scripted import Refusal, Script, ScriptedCall, ScriptedModel

OFFER = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"


@asynccontextmanager
async def serving(
    workshop: Workshop, *scripts: Script, **server: Any
) -> AsyncIterator[tuple[Provider, Hosted, httpx.AsyncClient]]:
    async with provided(*scripts, **server) as served:
        tables = {"transports": {"openai": {**served.table, "voice": "webrtc"}}}
        async with hosted(workshop, served, tables=tables) as host, asking(host) as ada:
            yield served, host, ada


async def speaks(model: ScriptedModel) -> None:
    # The browser's sound goes past the host, so nothing there says when the user has spoken.
    await model.hears_speech("how many words")
    await model.calls(ScriptedCall("hst_facts", {"text": "one two"}))
    await model.says("Two words.")


def test_a_browser_calls_the_provider_with_the_host_beside_it(workshop: Workshop) -> None:
    async def main() -> None:
        async with serving(workshop, speaks) as (served, host, ada):
            prepared = (await ada.get("/session")).json()
            named = {NAMED: prepared["token"]}
            minted = served.server.calls.minted[prepared["client_secret"]]
            assert {each["name"] for each in minted["tools"]} == {each["id"] for each in prepared["tools"]}
            assert "hst_written" not in {each["id"] for each in prepared["tools"]}

            body = {"sdp": OFFER, "session_id": prepared["session_id"]}
            answer = await ada.post("/sdp", json=body, headers=named)
            assert (answer.status_code, answer.json()["sdp"][:3]) == (200, "v=0")
            (call,) = served.server.calls.opened.values()
            assert call.offer == OFFER

            async with host.client("voice", token=prepared["token"]) as beside:
                assert beside.session
                assert beside.session["session"] == prepared["session_id"]
                done = await beside.until_type("tool_complete")
                assert (done["data"]["id"], done["data"]["mode"]) == (prepared["session_id"], "voice")
                await beside.until(lambda: beside.said("assistant") == ["Two words."])
                assert beside.said("user") == ["how many words"]
                await beside.say("end")
                assert (await beside.until_closed())[0] == 4000
            assert call.hung_up
            ended = await ada.post("/sdp", json=body, headers=named)
            assert (ended.status_code, ended.json()["error"]["code"]) == (401, "session_expired")

    asyncio.run(main())


def test_a_browser_that_calls_again_replaces_its_call(workshop: Workshop) -> None:
    """A page that was loaded anew has another peer, and the same session."""

    async def waits(model: ScriptedModel) -> None:
        await model.hears()

    async def main() -> None:
        async with serving(workshop, waits) as (served, host, ada):
            prepared = (await ada.get("/session")).json()
            body = {"sdp": OFFER, "session_id": prepared["session_id"]}
            for _ in range(2):
                answer = await ada.post("/sdp", json=body, headers={NAMED: prepared["token"]})
                assert answer.status_code == 200
            first, second = served.server.calls.opened.values()
            assert (first.hung_up, second.hung_up) == (True, False)
            assert (await ada.get("/health")).json()["active_sessions"] == 1
            assert host.house
            await host.house.sessions.drain()
            assert second.hung_up

    asyncio.run(main())


def test_offers_that_are_none_and_sessions_that_are_not_there(workshop: Workshop) -> None:
    async def main() -> None:
        async with serving(workshop, speaks) as (served, _, ada):
            prepared = (await ada.get("/session")).json()
            session, named = prepared["session_id"], {NAMED: prepared["token"]}
            for sdp in ("hello", "v=0\r\ns=-\r\n", "v=1\r\nm=audio 9 UDP 111\r\n"):
                wrong = await ada.post("/sdp", json={"sdp": sdp, "session_id": session}, headers=named)
                assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "invalid_sdp")
            other = await ada.post("/sdp", json={"sdp": OFFER, "session_id": "0" * 32}, headers=named)
            assert (other.status_code, other.json()["error"]["code"]) == (409, "other_session")
            for token in (f"{'0' * 32}.x", f"{session}.guessed"):
                body = {"sdp": OFFER, "session_id": token.partition(".")[0]}
                unknown = await ada.post("/sdp", json=body, headers={NAMED: token})
                assert (unknown.status_code, unknown.json()["error"]["code"]) == (401, "session_expired")
            text = (await ada.post("/execute/hst_facts", json={"arguments": {"text": "a"}})).json()
            body = {"sdp": OFFER, "session_id": text["session"]}
            written = await ada.post("/sdp", json=body, headers={NAMED: text["token"]})
            assert written.status_code == 409
            assert served.server.calls.opened == {}

    asyncio.run(main())


def test_what_the_provider_refuses(workshop: Workshop) -> None:
    async def main() -> None:
        refusals = [Refusal(401, "invalid_api_key", "no")]
        async with serving(workshop, speaks, refusals=refusals) as (_, __, ada):
            refused = await ada.get("/session")
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "provider_unavailable")
            assert "does not accept the API key" in refused.json()["error"]["message"]

    asyncio.run(main())


def test_a_provider_without_calls_of_a_browser_says_what_to_use(workshop: Workshop) -> None:
    async def main() -> None:
        async with provided(speaks) as served, hosted(workshop, served) as host, asking(host) as ada:
            body = {"sdp": OFFER, "session_id": "0" * 32}
            for answer in (await ada.get("/session"), await ada.post("/sdp", json=body)):
                assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_browser_calls")
                assert "/ws/voice" in answer.json()["error"]["suggestion"]
            assert (await ada.head("/session")).status_code == 405

    asyncio.run(main())
