"""Voice sessions: states, barge-in, suppressed output, context, slow tools, the end."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest
from host_harness import HostFolder, running_host, scripted_provider, wait_until
from jackfield.runtime import Runtime
from jackfield.session.session import TRANSITIONS, State
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_sessions.tool_runner import MAX_BATCHES

PROVIDERS = pytest.mark.parametrize("provider", ["openai", "gemini"])


def legal(states: list[str]) -> bool:
    return all(State(after) in TRANSITIONS[State(before)] for before, after in itertools.pairwise(states))


@PROVIDERS
def test_states_are_published_and_only_legal_transitions_occur(
    host_folder: HostFolder, provider: str
) -> None:
    heard = asyncio.Event()

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("one")
        await model.calls(ScriptedCall("hst_look", {"text": "x"}))
        await model.says("Here it is.")
        await model.hears_speech("two")
        await model.speaks("A long story begins", ms=1000)
        await heard.wait()
        await model.is_interrupted()
        await model.hears_speech("three")
        await model.says("Done.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script, provider=provider) as served,
            running_host(host_folder, served) as host,
            host.client("voice") as ada,
        ):
            await ada.speak()
            await ada.until_type("turn_complete")
            before = ada.audio_ms()
            await ada.speak()
            await ada.until(lambda: ada.audio_ms() >= before + 1000)
            heard.set()
            await ada.speak()
            await ada.until(lambda: ada.said("assistant")[-1:] == ["Done."])
            await ada.say("end")
            assert (await ada.until_closed())[0] == 4000
            assert ada.states[0] == "ready"
            assert {"listening", "processing", "speaking", "executing_tool"} <= set(ada.states)
            assert ada.states[-1] == "terminated"
            assert legal(ada.states), ada.states
            assert not ada.of("session_status")[-1]["active"]

    asyncio.run(main())


@PROVIDERS
def test_a_barge_in_interrupts_at_once_truncates_at_the_playback_position_and_stops_the_audio(
    host_folder: HostFolder, provider: str
) -> None:
    seen: dict[str, Any] = {}
    heard = asyncio.Event()

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("tell me a story")
        await model.speaks("Once upon a time there was a lighthouse by the sea", ms=2000)
        await heard.wait()
        await model.is_interrupted()
        seen["ms"] = await model.truncated()
        await model.hears_speech("stop")
        await model.says("I stopped.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script, provider=provider) as served,
            running_host(host_folder, served) as host,
            host.client("voice", plays=False) as ada,
        ):
            await ada.speak()
            await ada.until(lambda: ada.audio_ms() >= 2000)
            item = ada.of("audio_frame")[0]["item"]
            await ada.say("playback", item=item, ms=700)
            (live,) = host.sessions.live.values()
            await ada.until(lambda: live.playback.played_ms == 700)
            heard.set()
            await ada.speak()
            await ada.until(lambda: "I stopped." in ada.said("assistant"))
            begins = [
                at for at, each in enumerate(ada.got) if each["type"] in ("speech_started", "interrupted")
            ]
            (at,) = [at for at in begins if ada.got[at - 1]["type"] == "audio_frame"] or begins[1:2]
            after = ada.got[at:]
            assert not [each for each in after if each["type"] == "audio_frame" and each["item"] == item]
            cut = next(each for each in ada.of("message") if each.get("interrupted"))
            assert cut["text"].startswith("Once upon")
            assert "lighthouse" not in cut["text"]

    asyncio.run(main())
    assert abs(seen["ms"] - 700) <= 20


def test_stopping_buffered_speech_truncates_the_models_memory(
    host_folder: HostFolder,
) -> None:
    """The model has sent its whole answer, and the user hears only the beginning."""
    seen: dict[str, Any] = {}

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("tell me a story")
        await model.says("Once upon a time there was a lighthouse by the sea and it was dark")
        seen["ms"] = await model.truncated()
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            host.client("voice", plays=False) as ada,
        ):
            await ada.speak()
            await ada.until_type("turn_complete")
            await ada.say("playback", item=ada.of("audio_frame")[0]["item"], ms=200)
            await ada.say("interrupt")
            await ada.until(lambda: seen)
            last = await ada.until(lambda: [m for m in ada.of("message") if m.get("interrupted")])
            first = next(m for m in ada.of("message") if m["speaker"] == "assistant")
            # The shorter answer takes the place of the longer one.
            assert last[0]["answer"] == first["answer"]
            assert first["text"].startswith(last[0]["text"])
            assert "dark" not in last[0]["text"]

    asyncio.run(main())
    assert abs(seen["ms"] - 200) <= 20


@pytest.mark.parametrize("intent", ["SUPPRESS_AUDIO", "SUPPRESS_TRANSCRIPT"])
@PROVIDERS
def test_suppressed_output_is_neither_sent_nor_transcribed(
    host_folder: HostFolder, provider: str, intent: str
) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("one")
        await model.calls(ScriptedCall("hst_hush", {"text": intent}))
        await model.says("The secret word is heron.")
        await model.hears_speech("two")
        await model.says("And now aloud.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script, provider=provider) as served,
            running_host(host_folder, served) as host,
            host.client("voice") as ada,
        ):
            await ada.speak()
            await ada.until_type("turn_complete")
            first = json.dumps(ada.got)
            silent = ada.audio_ms() == 0
            await ada.speak()
            await ada.until_type("turn_complete", 2)
            assert ada.said("assistant")[-1] == "And now aloud."
            async with host.client("voice", token=ada.token) as again:
                replayed = json.dumps(again.got)
            kept = [
                json.loads(entry.value)["text"]
                for entry in await _store(host).read(f"transcript/{ada.session['session']}")  # type: ignore[index]
            ]
            if intent == "SUPPRESS_AUDIO":
                assert silent
                assert "heron" in first
                assert "The secret word is heron." in kept
            else:
                assert not silent
                assert "heron" not in first + replayed + str(kept)
            # It applies to that turn only.
            assert ada.audio_ms() > 0
            assert "And now aloud." in kept

    asyncio.run(main())


def _store(host: Any) -> Any:
    return host.sessions.runtime.store


def test_transcripts_contain_both_sides(host_folder: HostFolder) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("what is the weather")
        await model.says("It rains.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            host.client("voice") as ada,
        ):
            await ada.speak()
            await ada.until_type("turn_complete")
            assert ada.session
            lines = await _store(host).read(f"transcript/{ada.session['session']}")
            said = [(line["speaker"], line["text"]) for line in (json.loads(each.value) for each in lines)]
            assert said == [("user", "what is the weather"), ("assistant", "It rains.")]
            assert [(m["speaker"], m["text"]) for m in ada.of("message")] == said

    asyncio.run(main())


@PROVIDERS
def test_high_priority_context_is_added_at_once_and_low_priority_context_at_the_next_break(
    host_folder: HostFolder, provider: str
) -> None:
    seen: dict[str, Any] = {}
    spoken = asyncio.Event()

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("one")
        await model.speaks("Listen to this", ms=300)
        # Input interrupts Gemini's answer, so its transport waits for the end of the answer itself.
        await wait_until(lambda: provider == "gemini" or "URGENT" in str(model.received))
        await asyncio.sleep(0.1)
        seen["during"] = str(model.received)
        await model.ends_speaking()
        await wait_until(lambda: "LATER" in str(model.received))
        seen["after"] = str(model.received)
        spoken.set()
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script, provider=provider) as served,
            running_host(host_folder, served) as host,
            host.client("voice") as ada,
        ):
            await ada.speak()
            await ada.until(lambda: ada.audio_ms() >= 300)
            await ada.say("context", text="LATER: the page shows lamps")
            await ada.say("context", text="URGENT: the basket is empty", priority="high")
            await ada.until(spoken.is_set)

    asyncio.run(main())
    assert "LATER" not in seen["during"]
    assert seen["after"].count("LATER") == seen["after"].count("URGENT") == 1


@pytest.mark.parametrize("mode", ["text", "voice"])
def test_a_long_tool_result_is_truncated_for_model_and_client_and_marked(
    host_folder: HostFolder, mode: str
) -> None:
    got: list[Any] = []

    async def script(model: ScriptedModel) -> None:
        await (model.hears_speech("all") if mode == "voice" else model.hears())
        got.extend((await model.calls(ScriptedCall("hst_much", {"text": "x"}))).values())
        await model.says("Much.")

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            host.client(mode) as ada,
        ):
            await (ada.speak() if mode == "voice" else ada.say("text", text="all"))
            done = await ada.until_type("tool_complete")
            await ada.until_type("turn_complete")
            assert len(json.dumps(done["data"])) <= 4000

    asyncio.run(main())
    assert len(json.dumps(got[0], separators=(",", ":"))) <= 4000
    assert "of 100" in got[0]["meta"]["cut"][0]
    # The best ones come first, so those are kept.
    assert [each["id"] for each in got[0]["data"]["results"][:3]] == [0, 1, 2]


@pytest.mark.parametrize("mode", ["text", "voice"])
def test_a_slow_tool_is_announced_and_can_be_cancelled(host_folder: HostFolder, mode: str) -> None:
    got: list[Any] = []

    async def script(model: ScriptedModel) -> None:
        await (model.hears_speech("wait") if mode == "voice" else model.hears())
        slow = ScriptedCall("hst_look", {"text": "slow", "before": "never"}, id="call_slow_0001")
        got.extend((await model.calls(slow)).values())
        await model.says("It was stopped.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served, dead_air_seconds=0.05) as host,
            host.client(mode) as ada,
        ):
            await (ada.speak() if mode == "voice" else ada.say("text", text="wait"))
            started = await ada.until_type("tool_start")
            notice = await ada.until_type("notification")
            assert notice["code"] == "working"
            assert "hst_look" in notice["text"]
            await ada.say("cancel", callId="another_call")
            await ada.until_type("notification", 3)
            assert not ada.of("tool_error")
            await ada.say("cancel", callId=started["callId"])
            stopped = await ada.until_type("tool_error")
            assert stopped["callId"] == started["callId"]
            await ada.until_type("turn_complete")

    asyncio.run(main())
    assert not got[0]["ok"]
    assert not got[0]["error"]["partialSideEffects"]
    assert host_folder.effects("done slow") == 0


@pytest.mark.parametrize("mode", ["text", "voice"])
def test_a_model_that_keeps_calling_tools_is_stopped_and_continues_on_request(
    host_folder: HostFolder, mode: str
) -> None:
    calls = 0

    async def hears(model: ScriptedModel) -> None:
        await (model.hears_speech("go on") if mode == "voice" else model.hears())

    async def script(model: ScriptedModel) -> None:
        nonlocal calls
        await hears(model)
        while calls < MAX_BATCHES:
            calls += 1
            call = ScriptedCall("hst_look", {"text": f"place {calls}"}, id=f"call_look_{calls:04}")
            await model.calls(call)
        if mode == "voice":
            # In text what the user said came with the last answer.
            await hears(model)
        await model.says("Found it.")

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            host.client(mode) as ada,
        ):
            await (ada.speak() if mode == "voice" else ada.say("text", text="look everywhere"))
            await ada.until_type("turn_complete")
            assert [each["code"] for each in ada.of("notification")] == ["endless_calls"]
            assert calls == MAX_BATCHES
            assert not ada.said("assistant")
            await (ada.speak() if mode == "voice" else ada.say("text", text="go on"))
            await ada.until_type("turn_complete", 2)
            assert ada.said("assistant") == ["Found it."]

    asyncio.run(main())


def test_a_text_answer_can_be_interrupted_and_the_next_question_is_answered(host_folder: HostFolder) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("word " * 4000, pieces=4000)
        heard = await model.hears()
        assert heard.text == "and now?"
        await model.says("Now this.")

    async def main() -> None:
        async with (
            scripted_provider(script, split=500, delay=0.01) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            await ada.say("text", text="go on and on")
            await ada.until_type("text_delta", 5)
            await ada.say("interrupt")
            await ada.until_type("interrupted")
            await ada.until(lambda: ada.states[-1] == "ready")
            cut = [each for each in ada.of("message") if each["speaker"] == "assistant"]
            assert cut[0]["interrupted"]
            assert len(cut[0]["text"]) < 19_000
            await ada.say("text", text="and now?")
            await ada.until(lambda: ada.said("assistant")[-1] == "Now this.")
            await ada.until(lambda: ada.states[-1] == "ready")
            assert legal(ada.states)

    asyncio.run(main())


def test_values_that_json_cannot_represent_do_not_block_later_messages(host_folder: HostFolder) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        (answer,) = (await model.calls(ScriptedCall("hst_odd", {"text": "x"}))).values()
        assert answer["ok"]
        await model.says("StreamEvent.")

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            await ada.say("text", text="tell")
            await ada.until_type("turn_complete")
            (odd,) = ada.of("custom")
            assert odd["fields"] == {"half": "?", "big": 2**80, "nothing": None}
            (progress,) = ada.of("tool_progress")
            assert progress["message"] == "half ? way"
            async with host.client("text", token=ada.token) as again:
                await again.until(lambda: again.last_event >= ada.last_event)
                assert again.of("custom") == [odd]

    asyncio.run(main())


def test_a_client_that_sends_end_ends_the_session_permanently(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with scripted_provider() as served, running_host(host_folder, served) as host:
            async with host.client("text") as ada:
                # A session in which nothing was said is deleted when it ends.
                await ada.say("text", text="hello")
                await ada.say("end")
                assert await ada.until_closed() == (4000, "the session has ended")
            async with host.connected("text") as again:
                await again.say("resume", token=ada.token)
                assert (await again.until_closed())[0] == 4000
            talks = host.sessions.live
            await wait_until(lambda: not talks)

    asyncio.run(main())


def test_a_client_that_resumes_before_the_end_is_saved_finds_the_session_ended(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = asyncio.Event()
    end_session = Runtime.end_session

    async def late(self: Runtime, session: Any) -> None:
        await written.wait()
        await end_session(self, session)

    monkeypatch.setattr(Runtime, "end_session", late)

    async def main() -> None:
        async with scripted_provider() as served, running_host(host_folder, served) as host:
            try:
                async with host.client("text") as ada:
                    await ada.say("end")
                    assert (await ada.until_closed())[0] == 4000
                async with host.connected("text") as again:
                    await again.say("resume", token=ada.token)
                    await again.until(lambda: again.closed or again.session)
                    assert again.closed
                    assert again.closed[0] == 4000
            finally:
                written.set()

    asyncio.run(main())


def test_the_loss_of_the_provider_is_reported_and_the_session_can_be_resumed(
    host_folder: HostFolder,
) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.fails("invalid_api_key", "the key was withdrawn")

    async def back(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("Back again.")

    async def main() -> None:
        async with scripted_provider(script, back) as served, running_host(host_folder, served) as host:
            async with host.client("text") as ada:
                await ada.say("text", text="hello")
                told = await ada.until_type("notification")
                assert told["code"] in ("authentication", "invalid_request_error", "server_error")
                token = ada.token
            async with host.client("text", token=token) as ada:
                await ada.say("text", text="hello again")
                await ada.until(lambda: "Back again." in ada.said("assistant"))

    asyncio.run(main())
