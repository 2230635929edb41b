"""`GET /session` and `POST /sdp`: a browser calls the provider, and the host joins the call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from host_harness import HostFolder, Provider, RunningHost, running_host, scripted_provider
from http_client import SESSION, http_client
from jackfield_scripted import Refusal, Script, ScriptedCall, ScriptedModel

OFFER = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"


@asynccontextmanager
async def serving(
    host_folder: HostFolder, *scripts: Script, **server: Any
) -> AsyncIterator[tuple[Provider, RunningHost, httpx.AsyncClient]]:
    async with scripted_provider(*scripts, **server) as served:
        tables = {"transports": {"openai": {**served.table, "voice": "webrtc"}}}
        async with running_host(host_folder, served, tables=tables) as host, http_client(host) as ada:
            yield served, host, ada


async def speaks(model: ScriptedModel) -> None:
    # The browser's audio does not pass the host, so the host does not see when the user has spoken.
    await model.hears_speech("how many words")
    await model.calls(ScriptedCall("hst_facts", {"text": "one two"}))
    await model.says("Two words.")


def test_a_browser_calls_the_provider_and_the_host_joins_the_call(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with serving(host_folder, speaks) as (served, host, ada):
            prepared = (await ada.get("/session")).json()
            named = {SESSION: prepared["token"]}
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


def test_a_second_call_of_a_browser_replaces_the_first(host_folder: HostFolder) -> None:
    """A page that was reloaded has another peer connection and the same session."""

    async def waits(model: ScriptedModel) -> None:
        await model.hears()

    async def main() -> None:
        async with serving(host_folder, waits) as (served, host, ada):
            prepared = (await ada.get("/session")).json()
            body = {"sdp": OFFER, "session_id": prepared["session_id"]}
            for _ in range(2):
                answer = await ada.post("/sdp", json=body, headers={SESSION: prepared["token"]})
                assert answer.status_code == 200
            first, second = served.server.calls.opened.values()
            assert (first.hung_up, second.hung_up) == (True, False)
            assert (await ada.get("/health")).json()["active_sessions"] == 1
            await host.sessions.drain()
            assert second.hung_up

    asyncio.run(main())


def test_invalid_offers_and_unknown_sessions_are_refused(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with serving(host_folder, speaks) as (served, _, ada):
            prepared = (await ada.get("/session")).json()
            session, named = prepared["session_id"], {SESSION: prepared["token"]}
            for sdp in ("hello", "v=0\r\ns=-\r\n", "v=1\r\nm=audio 9 UDP 111\r\n"):
                wrong = await ada.post("/sdp", json={"sdp": sdp, "session_id": session}, headers=named)
                assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "invalid_sdp")
            other = await ada.post("/sdp", json={"sdp": OFFER, "session_id": "0" * 32}, headers=named)
            assert (other.status_code, other.json()["error"]["code"]) == (409, "other_session")
            for token in (f"{'0' * 32}.x", f"{session}.guessed"):
                body = {"sdp": OFFER, "session_id": token.partition(".")[0]}
                unknown = await ada.post("/sdp", json=body, headers={SESSION: token})
                assert (unknown.status_code, unknown.json()["error"]["code"]) == (401, "session_expired")
            text = (await ada.post("/execute/hst_facts", json={"arguments": {"text": "a"}})).json()
            body = {"sdp": OFFER, "session_id": text["session"]}
            written = await ada.post("/sdp", json=body, headers={SESSION: text["token"]})
            assert written.status_code == 409
            assert served.server.calls.opened == {}

    asyncio.run(main())


def test_refusals_of_the_provider_are_reported(host_folder: HostFolder) -> None:
    async def main() -> None:
        refusals = [Refusal(401, "invalid_api_key", "no")]
        async with serving(host_folder, speaks, refusals=refusals) as (_, __, ada):
            refused = await ada.get("/session")
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "provider_unavailable")
            assert "rejected this deployment's API key" in refused.json()["error"]["message"]

    asyncio.run(main())


def test_a_provider_without_browser_calls_suggests_the_websocket(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider(speaks) as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            body = {"sdp": OFFER, "session_id": "0" * 32}
            for answer in (await ada.get("/session"), await ada.post("/sdp", json=body)):
                assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_browser_calls")
                assert "/ws/voice" in answer.json()["error"]["suggestion"]
            assert (await ada.head("/session")).status_code == 405

    asyncio.run(main())


def test_the_client_secret_of_a_browser_call_has_an_expiry_time(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with scripted_provider(speaks) as served:
            tables = {"transports": {"openai": {**served.table, "voice": "webrtc"}}}
            async with running_host(host_folder, served, tables=tables) as host, http_client(host) as http:
                prepared = (await http.get("/session")).json()
                assert set(prepared) == {"client_secret", "session_id", "token", "tools", "expires_at"}
                assert time.time() < prepared["expires_at"] < time.time() + 3600
                assert prepared["token"].startswith(prepared["session_id"])

    asyncio.run(main())
