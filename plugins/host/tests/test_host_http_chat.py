"""`POST /chat`: a turn over HTTP, streamed or collected."""

from __future__ import annotations

import asyncio

from host_harness import HostFolder, check, running_host, scripted_provider, wait_until
from http_client import SESSION, http_client, stream_events
from jackfield_scripted import Refusal, ScriptedCall, ScriptedModel

JSON = {"Accept": "application/json"}


async def counts(model: ScriptedModel) -> None:
    await model.hears()
    await model.calls(ScriptedCall("hst_look", {"text": "one two"}))
    await model.says("Two words.")
    await model.hears()
    await model.says("Still two.")


def test_a_turn_is_streamed_with_the_messages_of_a_websocket(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider(counts) as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            async with ada.stream("POST", "/chat", json={"message": "count"}) as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                assert response.headers["cache-control"] == "no-store"
                events = [each async for each in stream_events(response)]
            for each in events:
                check(each.data, by_host=True)
                assert each.name == each.data["type"]
            names = [each.name for each in events]
            assert names[0] == "session"
            assert names[-1] == "turn_complete"
            assert names.index("tool_start") < names.index("tool_complete") < names.index("text_delta")
            assert "".join(each.data["text"] for each in events if each.name == "text_delta") == "Two words."
            session = events[0].data
            numbered = [each for each in events if "id" in each.data]
            assert {each.id for each in numbered} == {
                f"{session['session'][:8]}-{each.data['id']}" for each in numbered
            }

            again = await ada.post(
                "/chat", json={"message": "again"}, headers={**JSON, SESSION: session["token"]}
            )
            answer = again.json()
            assert (again.status_code, answer["text"]) == (200, "Still two.")
            assert answer["session"] == session["session"]
            assert answer["events"][-1] == {"type": "turn_complete"}

    asyncio.run(main())


def test_an_empty_answer_is_an_empty_text(host_folder: HostFolder) -> None:
    async def says_nothing(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("")

    async def main() -> None:
        async with (
            scripted_provider(says_nothing) as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            answer = await ada.post("/chat", json={"message": "stop"}, headers=JSON)
            assert (answer.status_code, answer.json()["text"]) == (200, "")
            assert answer.json()["events"][-1] == {"type": "turn_complete"}

    asyncio.run(main())


def test_a_session_continues_over_websocket_and_http(host_folder: HostFolder) -> None:
    """A session can have two clients at once."""

    async def main() -> None:
        async with (
            scripted_provider(counts) as served,
            running_host(host_folder, served) as host,
            http_client(host) as http,
            host.client("text") as ada,
        ):
            await ada.say("text", text="count")
            await ada.until_type("turn_complete")
            answer = await http.post("/chat", json={"message": "again"}, headers={**JSON, SESSION: ada.token})
            assert answer.json()["text"] == "Still two."
            await ada.until_type("turn_complete", 2)
            assert ada.said("assistant") == ["Two words.", "Still two."]
            assert ada.closed is None

    asyncio.run(main())


def test_a_client_that_disconnects_does_not_stop_the_turn(host_folder: HostFolder) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_note", {"text": "kept", "before": "gate"}))
        await model.says("Noted.")

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            async with ada.stream("POST", "/chat", json={"message": "note it"}) as response:
                async for each in stream_events(response):
                    if each.name == "session":
                        token = each.data["token"]
                    if each.name == "tool_start":
                        break
            host_folder.open_gate("gate")
            async with ada.stream("GET", "/events", headers={SESSION: token}) as response:
                async for each in stream_events(response):
                    if each.name == "message" and each.data["speaker"] == "assistant":
                        assert each.data["text"] == "Noted."
                        break
            assert host_folder.effects("done kept") == 1
            (live,) = host.sessions.live.values()
            await wait_until(lambda: not live.hub.has_clients)

    asyncio.run(main())


def test_a_confirmation_is_requested_and_approved_over_http(host_folder: HostFolder) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
        await model.says("It waits for you.")
        await model.hears()
        assert "approved" in str(model.received)
        await model.says("Booked.")

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            answer = (await ada.post("/chat", json={"message": "book"}, headers=JSON)).json()
            (card,) = [each for each in answer["events"] if each["type"] == "confirmation_required"]
            assert (card["preview"], host_folder.effects("done a table")) == ("Book a table?", 0)
            named = {SESSION: answer["token"]}
            decided = await ada.post(f"/confirmations/{card['token']}", json={"approve": True}, headers=named)
            assert decided.json()["envelope"]["data"]["text"] == "a table"
            assert decided.json()["callId"] == card["callId"]
            used = await ada.post(f"/confirmations/{card['token']}", json={"approve": True}, headers=named)
            assert used.json()["envelope"] == decided.json()["envelope"]
            assert host_folder.effects("done a table") == 1
            async with ada.stream("GET", "/events", headers=named) as response:
                async for each in stream_events(response):
                    if each.data.get("text") == "Booked.":
                        break

    asyncio.run(main())


def test_invalid_chat_messages_are_refused(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider(counts) as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            empty = await ada.post("/chat", json={"message": " \x1c "})
            extra = await ada.post("/chat", json={"message": "a", "mode": "voice"})
            unknown = await ada.post("/chat", json={"message": "a"}, headers={SESSION: f"{'0' * 32}.x"})
            assert [each.status_code for each in (empty, extra, unknown)] == [400, 400, 404]
            assert (
                "mode: there is no such member; known names: message, timeZone, language."
                in extra.json()["error"]["message"]
            )
            async with host.client("voice") as spoken:
                wrong = await ada.post("/chat", json={"message": "a"}, headers={SESSION: spoken.token})
            assert (wrong.status_code, wrong.json()["error"]["code"]) == (409, "wrong_mode")
            assert served.server.requests == []

    asyncio.run(main())


def test_a_provider_failure_is_reported(host_folder: HostFolder) -> None:
    async def main() -> None:
        refusals = [Refusal(401, "invalid_api_key", "no")] * 9
        async with (
            scripted_provider(counts, refusals=refusals) as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            async with ada.stream("POST", "/chat", json={"message": "count"}) as response:
                events = [each async for each in stream_events(response)]
            assert "rejected this deployment's API key" in str([each.data for each in events])
            assert events[-1].name in ("turn_complete", "error")

    asyncio.run(main())


def test_chat_requests_do_not_use_up_a_users_sessions(host_folder: HostFolder) -> None:
    """A session without clients makes room for a new one, and can still be resumed."""

    async def script(model: ScriptedModel) -> None:
        while True:
            await model.hears()
            await model.says("Yes.")

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served, sessions_per_user=2) as host,
            http_client(host) as ada,
        ):
            answers = [await ada.post("/chat", json={"message": "a"}, headers=JSON) for _ in range(4)]
            assert [each.status_code for each in answers] == [200] * 4
            first = answers[0].json()["token"]
            again = await ada.post("/chat", json={"message": "b"}, headers={**JSON, SESSION: first})
            assert again.json()["text"] == "Yes."
            async with host.client("text"), host.client("text"):
                full = await ada.post("/chat", json={"message": "a"}, headers=JSON)
                assert (full.status_code, full.json()["error"]["code"]) == (429, "too_many_sessions")

    asyncio.run(main())
