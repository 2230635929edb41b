"""`POST /chat`: a turn over HTTP, streamed or whole."""

from __future__ import annotations

import asyncio

from asking import NAMED, asking, told, until
from hosting import Workshop, check, hosted, provided
from jackfield_scripted import Refusal, ScriptedCall, ScriptedModel

JSON = {"Accept": "application/json"}


async def counts(model: ScriptedModel) -> None:
    await model.hears()
    await model.calls(ScriptedCall("hst_look", {"text": "one two"}))
    await model.says("Two words.")
    await model.hears()
    await model.says("Still two.")


def test_a_turn_is_streamed_as_on_a_websocket(workshop: Workshop) -> None:
    async def main() -> None:
        async with provided(counts) as served, hosted(workshop, served) as host, asking(host) as ada:
            async with ada.stream("POST", "/chat", json={"message": "count"}) as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                assert response.headers["cache-control"] == "no-store"
                events = [each async for each in told(response)]
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
                "/chat", json={"message": "again"}, headers={**JSON, NAMED: session["token"]}
            )
            answer = again.json()
            assert (again.status_code, answer["text"]) == (200, "Still two.")
            assert answer["session"] == session["session"]
            assert answer["events"][-1] == {"type": "turn_complete"}

    asyncio.run(main())


def test_an_answer_without_words_is_an_empty_text(workshop: Workshop) -> None:
    async def says_nothing(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("")

    async def main() -> None:
        async with provided(says_nothing) as served, hosted(workshop, served) as host, asking(host) as ada:
            answer = await ada.post("/chat", json={"message": "stop"}, headers=JSON)
            assert (answer.status_code, answer.json()["text"]) == (200, "")
            assert answer.json()["events"][-1] == {"type": "turn_complete"}

    asyncio.run(main())


def test_a_conversation_goes_on_over_websocket_and_http(workshop: Workshop) -> None:
    """Neither of a session's two clients pushes the other out."""

    async def main() -> None:
        async with (
            provided(counts) as served,
            hosted(workshop, served) as host,
            asking(host) as http,
            host.client("text") as ada,
        ):
            await ada.say("text", text="count")
            await ada.until_type("turn_complete")
            answer = await http.post("/chat", json={"message": "again"}, headers={**JSON, NAMED: ada.token})
            assert answer.json()["text"] == "Still two."
            await ada.until_type("turn_complete", 2)
            assert ada.said("assistant") == ["Two words.", "Still two."]
            assert ada.closed is None

    asyncio.run(main())


def test_a_client_that_goes_away_does_not_stop_the_turn(workshop: Workshop) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_note", {"text": "kept", "before": "gate"}))
        await model.says("Noted.")

    async def main() -> None:
        async with provided(script) as served, hosted(workshop, served) as host, asking(host) as ada:
            async with ada.stream("POST", "/chat", json={"message": "note it"}) as response:
                async for each in told(response):
                    if each.name == "session":
                        token = each.data["token"]
                    if each.name == "tool_start":
                        break
            workshop.open_gate("gate")
            async with ada.stream("GET", "/events", headers={NAMED: token}) as response:
                async for each in told(response):
                    if each.name == "message" and each.data["speaker"] == "assistant":
                        assert each.data["text"] == "Noted."
                        break
            assert workshop.effects("done kept") == 1
            assert host.house
            (live,) = host.house.sessions.live.values()
            await until(lambda: not live.hub.has_clients)

    asyncio.run(main())


def test_a_confirmation_is_asked_for_and_given_over_http(workshop: Workshop) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
        await model.says("It waits for you.")
        await model.hears()
        assert "approved" in str(model.received)
        await model.says("Booked.")

    async def main() -> None:
        async with provided(script) as served, hosted(workshop, served) as host, asking(host) as ada:
            answer = (await ada.post("/chat", json={"message": "book"}, headers=JSON)).json()
            (card,) = [each for each in answer["events"] if each["type"] == "confirmation_required"]
            assert (card["preview"], workshop.effects("done a table")) == ("Book a table?", 0)
            named = {NAMED: answer["token"]}
            decided = await ada.post(f"/confirmations/{card['token']}", json={"approve": True}, headers=named)
            assert decided.json()["envelope"]["data"]["text"] == "a table"
            assert decided.json()["callId"] == card["callId"]
            used = await ada.post(f"/confirmations/{card['token']}", json={"approve": True}, headers=named)
            assert used.json()["envelope"] == decided.json()["envelope"]
            assert workshop.effects("done a table") == 1
            async with ada.stream("GET", "/events", headers=named) as response:
                async for each in told(response):
                    if each.data.get("text") == "Booked.":
                        break

    asyncio.run(main())


def test_what_cannot_be_said_is_refused(workshop: Workshop) -> None:
    async def main() -> None:
        async with provided(counts) as served, hosted(workshop, served) as host, asking(host) as ada:
            empty = await ada.post("/chat", json={"message": " \x1c "})
            extra = await ada.post("/chat", json={"message": "a", "mode": "voice"})
            unknown = await ada.post("/chat", json={"message": "a"}, headers={NAMED: f"{'0' * 32}.x"})
            assert [each.status_code for each in (empty, extra, unknown)] == [400, 400, 404]
            assert (
                "mode: there is no such member; known are message, timeZone, language."
                in extra.json()["error"]["message"]
            )
            async with host.client("voice") as spoken:
                wrong = await ada.post("/chat", json={"message": "a"}, headers={NAMED: spoken.token})
            assert (wrong.status_code, wrong.json()["error"]["code"]) == (409, "wrong_mode")
            assert served.server.requests == []

    asyncio.run(main())


def test_a_provider_that_fails_is_told(workshop: Workshop) -> None:
    async def main() -> None:
        refusals = [Refusal(401, "invalid_api_key", "no")] * 9
        async with (
            provided(counts, refusals=refusals) as served,
            hosted(workshop, served) as host,
            asking(host) as ada,
        ):
            async with ada.stream("POST", "/chat", json={"message": "count"}) as response:
                events = [each async for each in told(response)]
            assert "does not accept the API key" in str([each.data for each in events])
            assert events[-1].name in ("turn_complete", "error")

    asyncio.run(main())


def test_chats_do_not_use_up_a_users_sessions(workshop: Workshop) -> None:
    """A session nobody listens to any more makes room for a new one, and can still be taken up."""

    async def script(model: ScriptedModel) -> None:
        while True:
            await model.hears()
            await model.says("Yes.")

    async def main() -> None:
        async with (
            provided(script) as served,
            hosted(workshop, served, sessions_per_user=2) as host,
            asking(host) as ada,
        ):
            answers = [await ada.post("/chat", json={"message": "a"}, headers=JSON) for _ in range(4)]
            assert [each.status_code for each in answers] == [200] * 4
            first = answers[0].json()["token"]
            again = await ada.post("/chat", json={"message": "b"}, headers={**JSON, NAMED: first})
            assert again.json()["text"] == "Yes."
            async with host.client("text"), host.client("text"):
                full = await ada.post("/chat", json={"message": "a"}, headers=JSON)
                assert (full.status_code, full.json()["error"]["code"]) == (429, "too_many_sessions")

    asyncio.run(main())
