"""Every kind of event comes over `GET /events` with an id; until when a browser may call."""

from __future__ import annotations

import asyncio
import time

from asking import NAMED, asking, told
from hosting import Workshop, check, hosted, provided
from jackfield.protocol.codec import message_type
from jackfield.protocol.messages import SESSION_EVENTS, FormClosed, FormRequest
from jackfield_scripted import ScriptedCall, ScriptedModel


async def eventful(model: ScriptedModel) -> None:
    """A turn in which everything happens that a stream can tell of."""
    await model.hears()
    await model.calls(ScriptedCall("hst_odd", {"text": "tell"}))
    await model.calls(ScriptedCall("hst_refuse", {"text": "no"}))
    await model.calls(ScriptedCall("hst_look", {"text": "slow", "seconds": 0.3}))
    await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
    await model.says("It waits for you.")
    await model.hears()
    await model.says("Then not." if "declined" in str(model.received) else "It is booked.")


def test_every_kind_of_event_is_streamed_with_an_id_and_as_published(workshop: Workshop) -> None:
    async def main() -> None:
        async with (
            provided(eventful) as served,
            hosted(workshop, served, dead_air_seconds=0.05) as host,
            asking(host) as http,
            host.client("text") as ada,
            http.stream("GET", "/events", headers={NAMED: ada.token}) as response,
        ):
            await ada.say("text", text="go on")
            await ada.until_type("turn_complete")
            (asked,) = ada.of("confirmation_required")
            await ada.say("decline", token=asked["token"])
            await ada.until(lambda: "Then not." in ada.said("assistant"))
            await ada.say("end")
            await ada.until_closed()
            events = [each async for each in told(response) if not each.comment]
        for each in events:
            check(each.data, by_host=True)
            assert each.id == f"{ada.token[:8]}-{each.data['id']}"
        # A provider with a model of its own does not ask with forms.
        kinds = set(SESSION_EVENTS) - {FormRequest, FormClosed}
        assert {each.name for each in events} == set(map(message_type, kinds))
        (settled,) = [each.data for each in events if each.name == "confirmation_settled"]
        assert not settled["approved"]

    asyncio.run(main())
    assert workshop.effects("done a table") == 0


def test_what_a_browser_is_given_for_its_call_says_until_when(workshop: Workshop) -> None:
    async def main() -> None:
        async with provided(eventful) as served:
            tables = {"transports": {"openai": {**served.table, "voice": "webrtc"}}}
            async with hosted(workshop, served, tables=tables) as host, asking(host) as http:
                prepared = (await http.get("/session")).json()
                assert set(prepared) == {"client_secret", "session_id", "token", "tools", "expires_at"}
                assert time.time() < prepared["expires_at"] < time.time() + 3600
                assert prepared["token"].startswith(prepared["session_id"])

    asyncio.run(main())
