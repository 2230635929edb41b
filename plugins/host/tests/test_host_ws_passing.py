"""What is of use only at the moment, and what a client may say twice."""

from __future__ import annotations

import asyncio

from hosting import Workshop, hosted, provided
from jackfield_scripted import ScriptedModel


async def echo(model: ScriptedModel) -> None:
    while True:
        heard = await model.hears()
        await model.says(f"You said {heard.text}")


def test_a_spoken_turn_is_told_in_all_its_parts(workshop: Workshop) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("how many words")
        await model.says("Two words.")
        await asyncio.sleep(30)

    async def main() -> None:
        async with provided(script) as served, hosted(workshop, served) as host, host.client("voice") as ada:
            await ada.speak()
            await ada.until_type("turn_complete")
            kinds = [each["type"] for each in ada.got]
            order = ["session", "speech_started", "audio", "sound", "turn_complete"]
            assert [kinds.index(kind) for kind in order] == sorted(map(kinds.index, order))
            # Sound waits for nothing, so that it may be there before what has to be kept first.
            await ada.until_type("speech_stopped")
            (spoken,) = ada.of("audio")
            assert {each["item"] for each in ada.of("sound")} == {spoken["item"]}
            written = [each for each in ada.of("transcript") if each["final"]]
            assert [(each["speaker"], each["text"]) for each in written] == [
                ("user", "how many words"),
                ("assistant", "Two words."),
            ]
            assert written[1]["item"] == spoken["item"]

    asyncio.run(main())


def test_what_is_sent_again_under_one_name_is_said_once(workshop: Workshop) -> None:
    async def main() -> None:
        async with provided(echo) as served, hosted(workshop, served) as host, host.client("text") as ada:
            for _ in range(2):
                await ada.say("text", text="hello", clientId="m-1")
            await ada.until_type("turn_complete")
            await ada.say("text", text="hello", clientId="m-2")
            await ada.until_type("turn_complete", 2)
            assert ada.said("user") == ["hello", "hello"]
            assert [each["clientId"] for each in ada.of("message") if each["speaker"] == "user"] == [
                "m-1",
                "m-2",
            ]

    asyncio.run(main())


def test_a_client_that_comes_back_is_told_when_it_has_caught_up(workshop: Workshop) -> None:
    async def main() -> None:
        async with provided(echo) as served, hosted(workshop, served) as host:
            async with host.client("text") as ada:
                await ada.until_type("caught_up")
                await ada.say("text", text="hello")
                await ada.until_type("turn_complete")
            async with host.client("text", token=ada.token) as back:
                await back.until_type("caught_up")
                at = back.got.index(back.of("caught_up")[0])
                missed = [each for each in back.got[:at] if "id" in each]
                assert [each["id"] for each in missed] == list(range(1, ada.last_event + 1))

    asyncio.run(main())
