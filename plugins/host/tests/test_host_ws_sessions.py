"""Sessions over a WebSocket: registry, prompts, session tools, errors, audit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from host_harness import Client, HostFolder, HostProcess, RunningHost, running_host, scripted_provider
from jackfield_openai.transport import OpenAITransport
from jackfield_scripted import ScriptedCall, ScriptedModel

WAYS = pytest.mark.parametrize(
    ("provider", "mode"), [("openai", "text"), ("openai", "voice"), ("gemini", "text"), ("gemini", "voice")]
)

ScriptBody = Callable[[ScriptedModel], Awaitable[None]]


async def hears(model: ScriptedModel, mode: str, words: str = "hello") -> None:
    """Wait for the user's input, in text or voice."""
    await (model.hears_speech(words) if mode == "voice" else model.hears())


async def asks(client: Client, words: str = "hello") -> None:
    """Send the user's input, in text or voice."""
    await (client.speak() if client.mode == "voice" else client.say("text", text=words))


def answers(mode: str, *calls: ScriptedCall) -> tuple[ScriptBody, list[Any]]:
    """Return a model that makes these calls one after the other, and the results it gets."""
    got: list[Any] = []

    async def script(model: ScriptedModel) -> None:
        await hears(model, mode)
        for call in calls:
            got.extend((await model.calls(call)).values())
        await model.says("So it is.")
        await asyncio.Event().wait()

    return script, got


def conversation(
    host_folder: HostFolder, provider: str, mode: str, *calls: ScriptedCall
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Run one turn with these calls; return what the model and the client got."""
    script, got = answers(mode, *calls)
    told: list[dict[str, Any]] = []

    async def main() -> None:
        async with (
            scripted_provider(script, provider=provider) as served,
            running_host(host_folder, served) as host,
            host.client(mode) as ada,
        ):
            await asks(ada)
            await ada.until_type("turn_complete")
            told.extend(ada.got)

    asyncio.run(main())
    return got, told


def version(host_folder: HostFolder) -> str:
    return str(json.loads(host_folder.registry.read_text())["version"])


def test_the_registry_version_is_in_the_log_and_in_the_first_message(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        async with (
            scripted_provider() as served,
            HostProcess(host_folder, served) as host,
            host.client("text") as ada,
        ):
            assert ada.got[0]["type"] == "session"
            assert ada.got[0]["registry"] == version(host_folder)
            assert ada.got[0]["protocol"] == ada.raw.subprotocol == "jackfield.1"
        output = host.output.read_text()
        assert version(host_folder) in output
        assert "Traceback" not in output
        assert ada.token not in output

    asyncio.run(main())


@WAYS
def test_the_provider_gets_the_schemas_with_guides_in_text_and_summaries_in_voice(
    host_folder: HostFolder, provider: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A provider on this machine would get a shorter prompt.
    monkeypatch.setattr(OpenAITransport, "prompt_tokens", None)
    seen: dict[str, Any] = {}

    async def script(model: ScriptedModel) -> None:
        await hears(model, mode)
        seen.update(prompt=model.instructions, tools=dict(model.tools))
        await model.says("Hello.")

    async def main() -> None:
        async with (
            scripted_provider(script, provider=provider) as served,
            running_host(host_folder, served) as host,
            host.client(mode, timeZone="Asia/Tokyo") as ada,
        ):
            await asks(ada)
            await ada.until_type("turn_complete")
            offered = {tool["id"] for tool in ada.got[0]["tools"]}
            assert offered == set(seen["tools"])

    asyncio.run(main())
    assert "seconds" in str(seen["tools"]["hst_look"])
    assert ("Guide of hst_look" in seen["prompt"]) == (mode == "text")
    assert "Summary of hst_look" in seen["prompt"]
    assert "Asia/Tokyo" in seen["prompt"]
    only = {"text": "start_voice_session", "voice": "end_voice_session"}
    assert only[mode] in seen["tools"]
    assert only["voice" if mode == "text" else "text"] not in seen["tools"]


async def refused(host: RunningHost, mode: str, **options: Any) -> dict[str, Any]:
    """Return the error of a client that is refused because of a ban."""
    async with host.connected(mode) as client:
        await client.say("resume" if "token" in options else "start", **options)
        assert await client.until_closed() == (4005, "the user is banned")
        (error,) = client.of("error")
        assert error["code"] == "banned"
        assert 0 < error["retryAfter"] <= 60
        return error


BAN = ScriptedCall("ignore_user", {"duration_seconds": 60, "farewell_message": "Goodbye for a minute."})


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_a_ban_in_text_is_reported_and_applies_to_every_connection_and_host(
    host_folder: HostFolder, provider: str
) -> None:
    script, got = answers("text", BAN)

    async def main() -> None:
        async with (
            scripted_provider(script, provider=provider) as served,
            running_host(host_folder, served) as host,
            running_host(host_folder, served) as other,
            other.client("voice") as speaking,
            host.client("text") as ada,
        ):
            await ada.say("text", text="you fool")
            await ada.until_type("turn_complete")
            (ban,) = ada.of("custom")
            assert (ban["name"], ban["fields"]["message"]) == ("ban", "Goodbye for a minute.")
            for there in (host, other):
                await refused(there, "text")
                await refused(there, "voice")
                await refused(there, "text", token=ada.token, lastEvent=ada.last_event)
            await ada.say("text", text="let me in")
            assert (await ada.until_closed())[0] == 4005
            assert "banned" in ada.of("error")[-1]["message"]
            # The user's other connections are closed by the ban, too.
            speaking.plays = False
            for _ in range(40):
                await speaking.speak(200)
                await asyncio.sleep(0.05)
                if speaking.closed:
                    break
            assert (await speaking.until_closed())[0] == 4005

    asyncio.run(main())
    assert got[0]["data"]["client_told"]


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_after_a_ban_in_voice_the_goodbye_is_played_and_user_input_is_ignored(
    host_folder: HostFolder, provider: str
) -> None:
    seen: dict[str, Any] = {}

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("you fool")
        (seen["answer"],) = (await model.calls(BAN)).values()
        await model.says("Goodbye for a minute, and take care of yourself.")
        seen["before"] = len(model.received)
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script, provider=provider) as served,
            running_host(host_folder, served) as host,
            host.client("voice", plays=False) as ada,
        ):
            await ada.speak()
            await ada.until_type("turn_complete")
            item, ms = ada.of("audio_frame")[-1]["item"], int(ada.audio_ms())
            await ada.speak()
            await ada.say("text", text="no, wait")
            await ada.say("playback", item=item, ms=ms // 2)
            await asyncio.sleep(0.2)
            assert not ada.closed, "it was hung up before the farewell was heard"
            model = served.server.models[0]
            assert len(model.received) == seen["before"], model.received[seen["before"] :]
            await ada.say("playback", item=item, ms=ms + 1)
            assert await ada.until_closed() == (4000, "the session has ended")
            assert ada.states[-1] == "terminated"
            assert not ada.of("notification")
            await refused(host, "voice")
            async with host.connected("voice") as again:
                await again.say("resume", token=ada.token)
                assert (await again.until_closed())[0] in (4000, 4005)

    asyncio.run(main())
    assert seen["answer"]["data"]["say"] == "Goodbye for a minute."


@WAYS
def test_a_session_tool_of_the_other_mode_is_refused(
    host_folder: HostFolder, provider: str, mode: str
) -> None:
    other = (
        ScriptedCall("end_voice_session", {"reason": "other"})
        if mode == "text"
        else ScriptedCall("start_voice_session")
    )
    (answer,), told = conversation(host_folder, provider, mode, other)
    assert answer["error"]["type"] == "MODE_RESTRICTED"
    assert not answer["error"]["partialSideEffects"]
    assert [each["errorType"] for each in told if each["type"] == "tool_error"] == ["MODE_RESTRICTED"]
    assert not [each for each in told if each["type"] == "custom"]


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_a_voice_session_ends_with_a_text_for_the_chat(host_folder: HostFolder, provider: str) -> None:
    end = {"reason": "user_request", "closing_message": "Bye.", "text_message": "Call 0123 to go on."}
    script, got = answers("voice", ScriptedCall("end_voice_session", end))

    async def main() -> None:
        async with (
            scripted_provider(script, provider=provider) as served,
            running_host(host_folder, served) as host,
            host.client("voice") as ada,
        ):
            await ada.speak()
            assert (await ada.until_closed())[0] == 4000
            (chat,) = ada.of("custom")
            assert (chat["name"], chat["fields"]) == ("chat_message", {"text": "Call 0123 to go on."})
            assert ada.said("assistant") == ["So it is."]
            assert ada.audio_ms() > 0

    asyncio.run(main())
    assert got[0]["data"]["ends_after"] == "farewell_spoken"


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_a_pending_request_is_used_once_in_the_first_voice_turn(
    host_folder: HostFolder, provider: str, elsewhere: bool
) -> None:
    heard: list[str] = []

    async def writing(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(
            ScriptedCall("start_voice_session", {"pending_request": "Tell me a joke about ducks."})
        )
        await model.says("Speak now.")
        await asyncio.Event().wait()

    async def speaking(model: ScriptedModel) -> None:
        heard.append((await model.hears()).text + str(model.received))
        await model.says("A duck walks into a bar.")
        await model.hears_speech("another")
        await model.says("No.")
        await asyncio.Event().wait()

    async def silent(model: ScriptedModel) -> None:
        await model.hears_speech("hello")
        heard.append(str(model.received))
        await model.says("Hello.")

    async def main() -> None:
        async with (
            scripted_provider(writing, speaking, silent, provider=provider) as served,
            running_host(host_folder, served) as host,
            running_host(host_folder, served) as other,
            host.client("text") as ada,
        ):
            await ada.say("text", text="I would rather talk")
            await ada.until_type("turn_complete")
            (start,) = ada.of("custom")
            assert start["name"] == "voice_session_start"
            there = other if elsewhere else host
            async with there.client("voice", handover=ada.token) as voice:
                await voice.until_type("turn_complete")
                # The user had not spoken, and all of the answer was played.
                assert voice.said("assistant") == ["A duck walks into a bar."]
                assert voice.audio_ms() >= 6 * 60
                await voice.speak()
                await voice.until_type("turn_complete", 2)
            # The text session continues and is saved again.
            await ada.say("interrupt")
            async with there.client("voice", handover=ada.token) as voice:
                await voice.speak()
                await voice.until_type("turn_complete")
                assert voice.said("assistant") == ["Hello."]

    asyncio.run(main())
    assert heard[0].count("ducks") == 1 or provider == "gemini"
    assert "ducks" in heard[0]
    assert "ducks" not in heard[1]


def test_a_handover_from_an_unknown_or_foreign_session_is_ignored(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider() as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            forged = ada.token[:-1] + ("A" if ada.token[-1] != "A" else "B")
            for token in (forged, "f" * 32 + ".x", "../etc", ""):
                async with host.connected("voice") as voice:
                    await voice.say("start", handover=token or ".")
                    assert (await voice.until_closed())[0] == 4007
            assert len(host.sessions.live) == 1

    asyncio.run(main())


@WAYS
def test_invalid_unknown_and_malformed_calls_are_answered_one_by_one(
    host_folder: HostFolder, provider: str, mode: str
) -> None:
    calls = [ScriptedCall("hst_look", {"text": 7, "more": 1}), ScriptedCall("hst_lok", {"text": "x"})]
    if provider == "openai":
        calls.append(ScriptedCall("hst_look", '{"text": '))
    got, told = conversation(host_folder, provider, mode, *calls)
    assert [each["error"]["type"] for each in got] == ["VALIDATION", "NOT_FOUND", "VALIDATION"][: len(calls)]
    paths = {each["path"] for each in got[0]["error"]["details"]["errors"]}
    assert any("text" in path for path in paths)
    assert "hst_look" in got[1]["error"]["suggestion"]
    errors = [each["errorType"] for each in told if each["type"] == "tool_error"]
    assert errors == [each["error"]["type"] for each in got]
    assert host_folder.effects("begun x") == 0


@WAYS
def test_tools_see_their_session_and_the_audit_log_has_the_versions(
    host_folder: HostFolder, provider: str, mode: str
) -> None:
    (answer,), told = conversation(host_folder, provider, mode, ScriptedCall("hst_facts", {"text": "who"}))
    session = told[0]
    facts = answer["data"]
    assert facts == {
        "id": session["session"],
        "user": session["user"],
        "mode": mode,
        "turn": facts["turn"],
        "registry": session["registry"],
        "active": True,
    }

    async def audited() -> dict[str, Any]:
        return (await host_folder.audited(1))[0]

    line = asyncio.run(audited())
    assert (line["tool"], line["toolVersion"], line["registryVersion"]) == (
        "hst_facts",
        "1.2.3",
        version(host_folder),
    )
    assert (line["session"], line["mode"]) == (session["session"], mode)


@pytest.mark.parametrize(
    ("status", "code", "message", "advice"),
    [
        (401, "invalid_api_key", "rejected this deployment's API key", "operator should check"),
        (500, "server_error", "had an internal error", "Try again in a moment."),
    ],
)
def test_an_unreachable_provider_is_reported_in_plain_words(
    host_folder: HostFolder, status: int, code: str, message: str, advice: str
) -> None:
    from jackfield_scripted import Refusal

    async def main() -> None:
        refusals = [Refusal(status, code, "no")] * 10
        async with scripted_provider(refusals=refusals) as served, running_host(host_folder, served) as host:
            async with host.connected("voice") as ada:
                await ada.say("start")
                assert (await ada.until_closed())[0] == 4009
                (error,) = ada.of("error")
                assert message in error["message"]
                assert advice in error["message"]
            assert not host.sessions.live

    asyncio.run(main())
