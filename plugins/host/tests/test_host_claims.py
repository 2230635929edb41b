"""What the assistant says it did is checked against the calls that ran: marks, corrections, records."""

from __future__ import annotations

import asyncio
import json

import pytest
from host_harness import Client, HostFolder, HostProcess, RunningHost, running_host, scripted_provider
from http_client import http_client
from jackfield_scripted import ScriptedCall, ScriptedModel

PROVIDERS = pytest.mark.parametrize("provider", ["openai", "gemini"])

TOLD = "A check of your last answer"
"""How the note to the model begins."""


def told(model: ScriptedModel) -> int:
    """Return how often the model was told about a claim."""
    return json.dumps(model.received).count(TOLD)


def marks(client: Client) -> list[list[tuple[str, str, str]]]:
    """Return the marks of each message of the assistant: tool, phrase and state."""
    return [
        [(claim["tool"], claim["says"], claim["state"]) for claim in message.get("unbackedClaims", ())]
        for message in client.of("message")
        if message["speaker"] == "assistant"
    ]


NOT_CALLED = ("hst_book", "booked", "no_call")


@PROVIDERS
def test_a_claim_without_a_call_is_marked_recorded_and_corrected_within_the_turn(
    host_folder: HostFolder, provider: str
) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("I have booked a table for two.")
        await model.hears()
        assert told(model) == 1
        await model.says("Sorry, I have not booked anything yet.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script, provider=provider) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            await ada.say("text", text="a table for two")
            await ada.until_type("turn_complete")
            assert ada.said("assistant") == [
                "I have booked a table for two.",
                "Sorry, I have not booked anything yet.",
            ]
            assert marks(ada) == [[NOT_CALLED], []]
            assert len(ada.of("turn_complete")) == 1
            await assert_recorded(host_folder, host, ada)

    asyncio.run(main())


async def assert_recorded(host_folder: HostFolder, host: RunningHost, client: Client) -> None:
    """Assert that audit, metrics and transcript have the claim."""
    (line,) = await host_folder.audited(1)
    assert (line["event"], line["tool"], line["says"], line["state"]) == ("claim", *NOT_CALLED)
    assert (line["session"], line["turn"], line["mode"]) == (client.token.split(".")[0], 2, "text")
    assert "table for two" not in json.dumps(line)
    async with http_client(host) as http:
        metrics = (await http.get("/metrics")).text
        assert 'jackfield_unbacked_claims_total{state="no_call",tool="hst_book"} 1.0' in metrics
        found = (await http.get(f"/sessions/{line['session']}/transcript")).json()
        said = [each for each in found["lines"] if each.get("speaker") == "assistant"]
        assert [bool(each.get("unbackedClaims")) for each in said] == [True, False]


def test_the_model_is_told_once_in_a_turn_and_again_in_the_next(host_folder: HostFolder) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("I booked it.")
        await model.hears()
        await model.says("I am sure: I booked it.")
        await model.hears()
        assert told(model) == 1
        await model.says("I booked it.")
        await model.hears()
        assert told(model) == 2
        await model.says("Nothing is booked.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            await ada.say("text", text="book it")
            await ada.until_type("turn_complete")
            assert marks(ada) == [[NOT_CALLED], [NOT_CALLED]]
            await ada.say("text", text="really?")
            await ada.until_type("turn_complete", 2)
            assert marks(ada)[2:] == [[NOT_CALLED], []]

    asyncio.run(main())


def test_a_claim_is_backed_once_the_user_has_approved_the_call_and_may_be_repeated(
    host_folder: HostFolder,
) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
        await model.says("I booked a table.")
        await model.hears()
        assert "is waiting for the user's approval" in json.dumps(model.received)
        await model.says("It will be booked once you approve.")
        await model.hears()
        await model.says("Your table has been booked.")
        await model.hears()
        await model.says("As I said, I booked the table.")
        await model.hears()
        await model.says("I have just booked another table.")
        await model.hears()
        await model.says("I was wrong.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            await ada.say("text", text="a table")
            await ada.until_type("turn_complete")
            assert marks(ada) == [[("hst_book", "booked", "waiting")], []]
            await ada.say("approve", token=ada.of("confirmation_required")[0]["token"])
            await ada.until_type("turn_complete", 2)
            await ada.say("text", text="is it booked?")
            await ada.until_type("turn_complete", 3)
            assert marks(ada)[2:] == [[], []]
            await ada.say("text", text="and another one")
            await ada.until_type("turn_complete", 4)
            assert marks(ada)[4:] == [[NOT_CALLED], []]

    asyncio.run(main())


def test_what_the_assistant_reports_from_results_asks_or_denies_is_no_claim(
    host_folder: HostFolder,
) -> None:
    said = [
        "Table 4 is booked, table 5 is free.",
        "Shall I book it? I have not booked anything.",
        "Once it is booked, you get an e-mail.",
        "You wrote “I booked it”.",
        "Ich habe den Tisch gebucht.",
    ]

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_look", {"text": "tables"}))
        for each in said:
            await model.says(each)
            await model.hears()

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            for turn, _ in enumerate(said, 1):
                await ada.say("text", text="go on")
                await ada.until_type("turn_complete", turn)
            assert ada.said("assistant") == said
            assert marks(ada) == [[]] * len(said)

    asyncio.run(main())


@pytest.mark.parametrize(("checking", "expected"), [("report", [[NOT_CALLED]]), ("off", [[]])])
def test_the_setting_marks_without_telling_the_model_or_turns_the_check_off(
    host_folder: HostFolder, checking: str, expected: list[list[tuple[str, str, str]]]
) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("I booked it.")
        await model.hears()
        assert told(model) == 0
        await model.says("Good bye.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served, claim_checking=checking) as host,
            host.client("text") as ada,
        ):
            await ada.say("text", text="book it")
            await ada.until_type("turn_complete")
            assert marks(ada) == expected
            await ada.say("text", text="thanks")
            await ada.until_type("turn_complete", 2)
            assert marks(ada) == [*expected, []]

    asyncio.run(main())


@PROVIDERS
def test_a_spoken_claim_is_corrected_after_the_user_has_heard_it(
    host_folder: HostFolder, provider: str
) -> None:
    played = asyncio.Event()

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("a table for two")
        await model.says("I booked a table for two.")
        await model.hears()
        assert played.is_set(), "the model was told before the user had heard its answer"
        assert told(model) == 1
        await model.says("Sorry, that was wrong.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script, provider=provider) as served,
            running_host(host_folder, served) as host,
            host.client("voice", plays=False) as ada,
        ):
            await ada.speak()
            await ada.until_type("turn_complete")
            assert marks(ada) == [[NOT_CALLED]]
            item = ada.of("audio_frame")[-1]["item"]
            played.set()
            await ada.say("playback", item=item, ms=int(ada.audio_ms(item)) + 1)
            await ada.until(lambda: ada.said("assistant")[1:] == ["Sorry, that was wrong."])
            assert not [each for each in ada.of("message") if each.get("interrupted")]
            assert marks(ada) == [[NOT_CALLED], []]

    asyncio.run(main())


def test_a_user_who_speaks_first_is_answered_and_the_model_knows_of_its_claim(
    host_folder: HostFolder,
) -> None:
    connected: list[ScriptedModel] = []

    async def script(model: ScriptedModel) -> None:
        connected.append(model)
        await model.hears_speech("a table for two")
        await model.says("I booked a table for two at the window.")
        await model.hears_speech("and a chair")
        await model.says("Just a moment.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            host.client("voice", plays=False) as ada,
        ):
            await ada.speak()
            await ada.until_type("turn_complete")
            item = ada.of("audio_frame")[-1]["item"]
            await ada.say("playback", item=item, ms=int(ada.audio_ms(item)) - 1)
            (live,) = host.sessions.live.values()
            await ada.until(lambda: live.playback.played_ms > 0)
            await ada.speak()
            await ada.until(lambda: "Just a moment." in ada.said("assistant"))
            assert told(connected[0]) == 1
            # It answered the user, not the note.
            assert ada.said("assistant")[-1] == "Just a moment."

    asyncio.run(main())


def test_a_host_that_was_killed_asks_for_the_correction_after_its_restart(host_folder: HostFolder) -> None:
    """It takes seconds, because a host is started twice."""
    asked = asyncio.Event()

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("I booked it.")
        await model.hears()
        asked.set()
        # The new host repeats the conversation, so that this script goes on.
        await model.hears()
        assert told(model) == 1
        await model.says("Nothing is booked yet; I booked nothing.")
        await model.hears()
        assert told(model) == 1
        await model.says("As you like.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with scripted_provider(script) as served, HostProcess(host_folder, served) as host:
            async with host.client("text") as ada:
                await ada.say("text", text="book it")
                await asked.wait()
                await ada.until(lambda: marks(ada) == [[NOT_CALLED]])
                await host.kill()
            await host.start()
            async with host.client("text", token=ada.token, lastEvent=0) as back:
                await back.until(lambda: len(back.said("assistant")) == 2)
                assert marks(back) == [[NOT_CALLED], []]
                await back.say("text", text="never mind")
                await back.until(lambda: back.said("assistant")[2:] == ["As you like."])

    asyncio.run(main())


def test_another_host_continues_a_voice_session_whose_correction_was_not_spoken(
    host_folder: HostFolder,
) -> None:
    async def claims(model: ScriptedModel) -> None:
        await model.hears_speech("book it")
        await model.says("I booked it.")
        await asyncio.Event().wait()

    async def corrects(model: ScriptedModel) -> None:
        await model.hears()
        assert told(model) == 1
        await model.says("Nothing is booked yet.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with scripted_provider(claims, corrects) as served:
            # The user has not heard the answer when the host stops.
            async with running_host(host_folder, served) as host, host.client("voice", plays=False) as ada:
                await ada.speak()
                await ada.until_type("turn_complete")
            async with (
                running_host(host_folder, served) as host,
                host.client("voice", token=ada.token, lastEvent=0) as back,
            ):
                await back.until(lambda: back.said("assistant")[1:] == ["Nothing is booked yet."])
                assert marks(back) == [[NOT_CALLED], []]

    asyncio.run(main())


def test_an_approval_before_a_restart_still_backs_the_claim_after_it(host_folder: HostFolder) -> None:
    async def books(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
        await model.says("Please approve it.")
        await model.hears()
        await model.says("Your table has been booked.")
        await asyncio.Event().wait()

    async def repeats(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("Yes, I booked it.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with scripted_provider(books, repeats) as served:
            async with running_host(host_folder, served) as host, host.client("text") as ada:
                await ada.say("text", text="a table")
                await ada.until_type("turn_complete")
                await ada.say("approve", token=ada.of("confirmation_required")[0]["token"])
                await ada.until_type("turn_complete", 2)
            async with (
                running_host(host_folder, served) as host,
                host.client("text", token=ada.token, lastEvent=0) as back,
            ):
                await back.say("text", text="is it booked?")
                await back.until(lambda: back.said("assistant")[-1:] == ["Yes, I booked it."])
                assert marks(back) == [[], [], []]

    asyncio.run(main())
