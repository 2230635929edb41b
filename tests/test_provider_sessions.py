"""The same conversations over every provider, through the official SDKs and real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from jackfield.call_states import CallState, state_of
from jackfield.session.session import State
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_scripted.openai import RealtimeModel
from jackfield_scripted.openai.realtime_response import RealtimeResponse
from provider_sessions import INSTRUCTIONS, WAYS, hears, provider_session

EVERY = pytest.mark.parametrize("way", WAYS)
VOICE = pytest.mark.parametrize("way", ["openai-realtime", "gemini-live"])


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAB_KEY", "k")


@EVERY
def test_a_conversation_handles_parallel_calls_a_refusal_and_a_confirmation(
    way: str, site: Any, tmp_path: Path
) -> None:
    there = WAYS[way]
    other = "fab_text_only" if there.mode == "voice" else "fab_voice_only"
    seen: dict[str, Any] = {}

    async def script(model: ScriptedModel) -> None:
        await hears(there)(model, "what do you know")
        assert INSTRUCTIONS in model.instructions
        assert "fab_look" in model.tools
        assert other not in model.tools
        both = await model.calls(
            ScriptedCall("fab_look", {"text": "one two"}), ScriptedCall("fab_look", {"text": "three"})
        )
        seen["both"] = [each["data"]["words"] for each in both.values()]
        (seen["refused"],) = (await model.calls(ScriptedCall(other, {"text": "x"}))).values()
        await model.says("I know this.")
        await hears(there)(model, "book a table")
        (seen["pending"],) = (await model.calls(ScriptedCall("fab_book", {"text": "a table"}))).values()
        await model.says("It waits for you.")
        seen["told"] = (await model.hears()).text + str(model.received)
        await model.says("It is booked.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script) as user:
            await user.says("what do you know")
            await user.turn_ends(1)
            await user.says("book a table")
            await user.turn_ends(2)
            assert user.effects("fab_book") == 0
            (asked,) = user.of("confirmation_required")
            assert asked["preview"] == "Book a table?"
            await user.live.resolve_confirmation(asked["token"], approve=True)
            await user.turn_ends(3)
            assert user.effects("fab_book") == 1
            assert asked["token"] not in str(user.live.checkpoint.history.messages)
            assert "booked" in user.words
            assert not user.notifications

    asyncio.run(main())
    assert sorted(seen["both"]) == [1, 2]
    assert seen["refused"]["error"]["type"] == "MODE_RESTRICTED"
    assert seen["pending"]["error"]["type"] == "CONFIRMATION_REQUIRED"
    assert "token" not in str(seen["pending"])
    assert "approved" in seen["told"]
    assert '"ok":true' in seen["told"]


@EVERY
def test_a_duplicate_delivery_gets_the_first_result(way: str, site: Any, tmp_path: Path) -> None:
    there = WAYS[way]
    answers: list[Any] = []

    async def script(model: ScriptedModel) -> None:
        await hears(there)(model, "note it")
        for _ in range(2):
            answers.extend(
                (await model.calls(ScriptedCall("fab_note", {"text": "x"}, id="call_stable_0001"))).values()
            )
        await model.says("Noted.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script) as user:
            await user.says("note it")
            await user.turn_ends(1)
            assert user.effects("fab_note") == 1

    asyncio.run(main())
    assert answers[0] == answers[1]
    assert answers[0]["ok"]


@VOICE
def test_a_barge_in_truncates_at_the_playback_position(way: str, site: Any, tmp_path: Path) -> None:
    there = WAYS[way]
    seen: dict[str, int] = {}
    heard = asyncio.Event()

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("tell me a story")
        await model.speaks("Once upon a time there was a lighthouse by the sea", ms=2000)
        await heard.wait()
        await model.is_interrupted()
        seen["ms"] = await model.truncated()
        await model.hears_speech("stop")
        await model.says("I stopped.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script) as user:
            user.plays_at_once = False
            await user.says("tell me a story")
            await user.until(lambda: sum(len(each.pcm) for each in user.speech) >= 2000 * 48)
            user.live.report_playback(user.speech[-1].item, 700)
            heard.set()
            await user.says("stop")
            await user.turn_ends(1)
            # About a third of it was played, so about a third of it counts as said.
            assert user.answers[0].endswith("[interrupted]")
            assert "lighthouse" not in user.answers[0]
            assert "Once upon" in user.answers[0]

    asyncio.run(main())
    assert abs(seen["ms"] - 700) <= 20


@EVERY
def test_an_expiring_connection_is_renewed_without_losing_the_conversation(
    way: str, site: Any, tmp_path: Path
) -> None:
    there = WAYS[way]
    seen: dict[str, str] = {}

    async def first(model: ScriptedModel) -> None:
        await hears(there)(model, "my name is Ada")
        await model.says("Hello, Ada.")
        if there.mode == "voice":
            await model.goes_away(3.0)
            await asyncio.Event().wait()
        else:
            await model.hears()
            await model.fails("context_length_exceeded", "too long")

    async def second(model: ScriptedModel) -> None:
        await hears(there)(model, "who am I")
        seen["known"] = str(model.received)
        await model.says("You are Ada.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, first, second) as user:
            await user.says("my name is Ada")
            await user.turn_ends(1)
            if there.mode == "voice":
                await user.until(lambda: "going_away" in user.notifications)
            await user.says("who am I")
            await user.until(lambda: "You are Ada" in user.words)
            assert len(user.notifications) == 1

    asyncio.run(main())
    assert "Hello, Ada" in seen["known"]


@EVERY
def test_a_long_conversation_is_summarised_by_the_model_and_its_last_turns_are_kept(
    way: str, site: Any, tmp_path: Path
) -> None:
    there = WAYS[way]
    seen: dict[str, str] = {}

    async def first(model: ScriptedModel) -> None:
        for number in range(7):
            await hears(there)(model, f"question {number}")
            await model.says(f"Answer {number}.")
        await asyncio.Event().wait()

    async def summary(model: ScriptedModel) -> None:
        seen["older"] = (await model.hears()).text
        await model.says("They asked about numbers.")

    async def third(model: ScriptedModel) -> None:
        await hears(there)(model, "question 7")
        seen["known"] = model.instructions + str(model.received)
        await model.says("Answer 7.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, first, summary, third) as user:
            for number in range(7):
                await user.says(f"question {number}")
                await user.turn_ends(number + 1)
            await user.live._loop.connection.renew()
            await user.says("question 7")
            await user.until(lambda: "Answer 7" in user.words)

    asyncio.run(main())
    assert "question 1" in seen["older"]
    assert "question 2" not in seen["older"]
    assert "They asked about numbers." in seen["known"]
    assert "Answer 2" in seen["known"]
    assert "Answer 1" not in seen["known"]


@EVERY
def test_a_dropped_connection_is_restored_and_the_question_is_answered(
    way: str, site: Any, tmp_path: Path
) -> None:
    there = WAYS[way]

    async def first(model: ScriptedModel) -> None:
        await hears(there)(model, "are you there")
        await model.closes(1011, "internal error")

    async def second(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("I am here again.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, first, second) as user:
            await user.says("are you there")
            await user.until(lambda: "here again" in user.words)
            assert len(user.notifications) == 1

    asyncio.run(main())


# The most frequent complaints of users of other frameworks.


@VOICE
def test_a_result_survives_a_barge_in_and_the_action_runs_once(way: str, site: Any, tmp_path: Path) -> None:
    """A write during which the user speaks runs once, and its result still reaches the model."""
    there = WAYS[way]
    seen: list[Any] = []
    begun = asyncio.Event()

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("note it")
        calling = asyncio.create_task(
            model.calls(ScriptedCall("fab_slow_note", {"text": "x"}, id="call_stable_0002"))
        )
        await begun.wait()
        await model.is_interrupted()
        seen.extend((await calling).values())
        await model.hears_speech("did you note it")
        await model.says("Yes, noted.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script) as user:
            await user.says("note it")
            await user.begins("fab_slow_note")
            begun.set()
            await user.until(lambda: user.of("tool_complete"))
            await user.says("did you note it")
            await user.until(lambda: "noted" in user.words)
            assert user.effects("fab_slow_note") == 1

    asyncio.run(main())
    assert [each["ok"] for each in seen] == [True]


@EVERY
def test_a_write_is_not_cancelled_half_way(way: str, site: Any, tmp_path: Path) -> None:
    """An interruption stops reads and lets writes finish."""
    there = WAYS[way]
    seen: dict[str, Any] = {}

    async def script(model: ScriptedModel) -> None:
        await hears(there)(model, "both")
        seen.update(
            await model.calls(
                ScriptedCall("fab_slow_look", {"text": "x"}, id="call_slow_look"),
                ScriptedCall("fab_slow_note", {"text": "x"}, id="call_slow_note"),
            )
        )
        await model.says("Here is what happened.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script) as user:
            await user.says("both")
            await user.begins("fab_slow_look")
            await user.begins("fab_slow_note")
            await user.live.interrupt()
            await user.until(lambda: "what happened" in user.words)
            assert user.effects("fab_slow_note") == 1
            assert (user.effects("fab_slow_look", "begun"), user.effects("fab_slow_look")) == (1, 0)

    asyncio.run(main())
    assert seen["call_slow_note"]["ok"]
    assert not seen["call_slow_look"]["ok"]


@EVERY
def test_no_tool_stays_in_progress_after_an_interruption(way: str, site: Any, tmp_path: Path) -> None:
    """An interrupted call is reported as ended, and the session continues."""
    there = WAYS[way]

    async def script(model: ScriptedModel) -> None:
        await hears(there)(model, "look")
        await model.calls(ScriptedCall("fab_slow_look", {"text": "x"}))
        await model.says("I stopped looking.")
        await hears(there)(model, "again")
        await model.says("Still here.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script) as user:
            await user.says("look")
            await user.begins("fab_slow_look")
            await user.live.interrupt()
            (ended,) = await user.until(lambda: user.of("tool_error"))
            assert ended["tool"] == "fab_slow_look"
            await user.until(lambda: "stopped looking" in user.words)
            await user.says("again")
            await user.until(lambda: "Still here" in user.words)
            await user.until(lambda: user.live.session.state in (State.READY, State.LISTENING))

    asyncio.run(main())


def test_a_response_is_not_requested_while_one_is_active(site: Any, tmp_path: Path) -> None:
    """A result during speech requests no second response, which the server would reject."""
    there = WAYS["openai-realtime"]

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("note it")
        calling = asyncio.create_task(model.calls(ScriptedCall("fab_slow_note", {"text": "x"})))
        await asyncio.sleep(0.05)
        await calling
        await model.says("Noted.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script) as user:
            await user.says("note it")
            await user.until(lambda: user.of("tool_start"))
            # An urgent context message arrives in the middle of everything.
            await user.live.add_context("The kitchen closes at ten.", urgent=True)
            await user.until(lambda: "Noted" in user.words)
            assert not user.notifications

    asyncio.run(main())


@EVERY
def test_slow_tools_cause_no_dead_air(way: str, site: Any, tmp_path: Path) -> None:
    """A slow tool is announced before the user wonders."""
    there = WAYS[way]

    async def script(model: ScriptedModel) -> None:
        await hears(there)(model, "note it")
        await model.calls(ScriptedCall("fab_slow_note", {"text": "x"}))
        await model.says("Noted.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script, dead_air=0.1) as user:
            await user.says("note it")
            await user.until(lambda: "Noted" in user.words)
            assert "Still working: fab_slow_note." in [each["text"] for each in user.of("notification")]

    asyncio.run(main())


@pytest.mark.parametrize(("way", "fillers"), [("openai-realtime", 1), ("gemini-live", 0)])
def test_a_long_wait_is_filled_with_one_spoken_sentence_if_supported(
    way: str, fillers: int, site: Any, tmp_path: Path
) -> None:
    """Two calls much longer than the dead-air limit are one wait, and the filler stays out of the history."""
    there = WAYS[way]

    async def script(model: ScriptedModel) -> None:
        await hears(there)(model, "note it")
        await model.calls(
            ScriptedCall("fab_slow_note", {"text": "x"}), ScriptedCall("fab_slow_note", {"text": "y"})
        )
        await model.says("Noted.")
        await hears(there)(model, "again")
        await model.calls(ScriptedCall("fab_slow_note", {"text": "z"}))
        await model.says("Noted again.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script, dead_air=0.05) as user:
            await user.says("note it")
            await user.turn_ends(1)
            first = user.fillers
            assert len(first) == fillers
            assert user.notifications.count("working") > 2
            await user.says("again")
            await user.turn_ends(2)
            assert len(user.fillers - first) == fillers
            assert user.answers == ["Noted.", "Noted again."]
            states = [each["state"] for each in user.of("session_status")]
            slow = states.index("executing_tool")
            assert states[slow + 1] == "speaking"
            assert len(user.turns_ended) == 2

    asyncio.run(main())


@pytest.mark.parametrize("way", ["openai-realtime", "openai-webrtc"])
def test_an_interrupt_stops_the_filler_for_the_rest_of_the_wait(way: str, site: Any, tmp_path: Path) -> None:
    there = WAYS[way]
    fillers: asyncio.Queue[RealtimeResponse] = asyncio.Queue()

    async def script(model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        model.session.out_of_band = fillers
        await hears(there)(model, "note it")
        await model.calls(ScriptedCall("fab_slow_note", {"text": "x"}))
        await model.says("Noted.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script, dead_air=0.05) as user:
            await user.says("note it")
            filler = await fillers.get()
            await user.live.interrupt()
            await filler.start_message()
            await filler.send_audio(300)
            await user.turn_ends(1)
            assert filler.complete
            assert fillers.empty()
            assert not user.fillers
            assert user.effects("fab_slow_note") == 1

    asyncio.run(main())


def test_speech_during_a_filler_does_not_truncate_the_answer(site: Any, tmp_path: Path) -> None:
    """The user interrupts a filler: the words before it were heard, and the filler is not truncated."""
    there = WAYS["openai-realtime"]

    async def script(model: ScriptedModel) -> None:
        assert isinstance(model, RealtimeModel)
        await hears(there)(model, "note it")
        await model.speaks("Let me note that.", ms=200)
        noting = asyncio.create_task(model.calls(ScriptedCall("fab_slow_note", {"text": "x"})))
        async with model.session.changed:
            await model.session.changed.wait_for(lambda: "'conversation': 'none'" in str(model.received))
        await model.is_interrupted()
        await noting
        await hears(there)(model, "never mind")
        await model.says("All right.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script, dead_air=0.1) as user:
            await user.says("note it")
            await user.begins("fab_slow_note")
            user.plays_at_once = False
            await user.until(lambda: user.fillers)
            await user.says("never mind")
            await user.turn_ends(1)
            assert user.answers == ["Let me note that. [interrupted]", "All right."]

    asyncio.run(main())


@EVERY
def test_unknown_denied_and_malformed_calls_are_answered(way: str, site: Any, tmp_path: Path) -> None:
    there = WAYS[way]
    kinds: list[str] = []
    calls = [ScriptedCall("fab_nowhere", {"text": "x"}), ScriptedCall("fab_look", {"txt": "x"})]
    if there.provider == "openai":
        # Gemini cannot send arguments that are not JSON.
        calls.append(ScriptedCall("fab_look", '{"text": '))

    async def script(model: ScriptedModel) -> None:
        await hears(there)(model, "go on")
        answers = await model.calls(*calls)
        kinds.extend(each["error"]["type"] for each in answers.values())
        await model.says("That did not work.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script) as user:
            await user.says("go on")
            await user.turn_ends(1)
            assert "did not work" in user.words

    asyncio.run(main())
    assert kinds == ["NOT_FOUND", "VALIDATION", "VALIDATION"][: len(calls)]


@EVERY
def test_a_repeated_call_is_executed_once(way: str, site: Any, tmp_path: Path) -> None:
    """A call in a truncated message never runs."""
    there = WAYS[way]

    async def script(model: ScriptedModel) -> None:
        await hears(there)(model, "note it")
        await model.calls(ScriptedCall("fab_note", {"text": "x"}, id="call_stable_0003"), incomplete=True)
        await going_on(model)

    async def going_on(model: ScriptedModel) -> None:
        await hears(there)(model, "well?")
        await model.says("Nothing was noted.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script, going_on) as user:
            await user.says("note it")
            await asyncio.sleep(0.3)
            if there.mode == "voice":
                await user.says("well?")
            await user.until(lambda: "Nothing was noted" in user.words)
            assert user.effects("fab_note", "begun") == 0

    asyncio.run(main())


@EVERY
def test_context_survives_session_expiry(way: str, site: Any, tmp_path: Path) -> None:
    """A call that runs when the connection ends is not lost and not repeated."""
    there = WAYS[way]
    seen: dict[str, str] = {}
    begun = asyncio.Event()

    async def first(model: ScriptedModel) -> None:
        await hears(there)(model, "note it")
        calling = asyncio.create_task(model.calls(ScriptedCall("fab_slow_note", {"text": "x"})))
        if there.mode == "voice":
            await begun.wait()
            await model.closes(1011, "gone")
        await calling
        await model.closes(1011, "gone")

    async def second(model: ScriptedModel) -> None:
        seen["told"] = (await model.hears()).text + str(model.received)
        await model.says("It is noted already.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, first, second) as user:
            await user.says("note it")
            await user.begins("fab_slow_note")
            begun.set()
            await user.until(lambda: "noted already" in user.words)
            assert user.effects("fab_slow_note") == 1

    asyncio.run(main())
    assert "fab_slow_note" in seen["told"]


@VOICE
def test_impossible_playback_positions_do_no_harm(way: str, site: Any, tmp_path: Path) -> None:
    """A client that reports more playback than was sent, or none, does no harm."""
    there = WAYS[way]
    told = asyncio.Queue[None]()

    async def script(model: ScriptedModel) -> None:
        for words in ("one", "two"):
            await model.hears_speech(words)
            await model.speaks("Here it comes", ms=500)
            await told.get()
            await model.is_interrupted()
        assert await model.truncated() <= 20
        await model.hears_speech("done")
        await model.says("All is well.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script) as user:
            user.plays_at_once = False
            for heard in (10_000, 0):
                before = len(user.speech)
                await user.says("go on")
                await user.until(lambda before=before: len(user.speech) > before)  # type: ignore[misc]
                await asyncio.sleep(0.1)
                user.live.report_playback(user.speech[-1].item, heard)
                told.put_nowait(None)
                await asyncio.sleep(0.4)
            await user.says("done")
            await user.until(lambda: "All is well" in user.words)
            assert not user.notifications

    asyncio.run(main())


@EVERY
def test_the_model_learns_that_approval_is_pending(way: str, site: Any, tmp_path: Path) -> None:
    """A pending call is reported as not run yet, a decline as a decline, and nothing has run."""
    there = WAYS[way]
    seen: dict[str, Any] = {}

    async def script(model: ScriptedModel) -> None:
        await hears(there)(model, "book a table")
        (seen["pending"],) = (await model.calls(ScriptedCall("fab_book", {"text": "a table"}))).values()
        await model.says("It waits for you.")
        seen["told"] = (await model.hears()).text + str(model.received)
        await model.says("Then not.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, script) as user:
            await user.says("book a table")
            await user.turn_ends(1)
            (asked,) = user.of("confirmation_required")
            declined = await user.live.resolve_confirmation(asked["token"], approve=False)
            assert declined is not None
            assert state_of(declined.wire) is CallState.DECLINED
            await user.until(lambda: "Then not" in user.words)
            assert user.effects("fab_book", "begun") == 0

    asyncio.run(main())
    assert not seen["pending"]["ok"]
    assert "Not run yet" in seen["pending"]["error"]["message"]
    assert "declined" in seen["told"]
