"""Words in, words out."""

from __future__ import annotations

import orjson
from jackfield.transport.events import TextDelta, Transcript, TurnComplete, Usage
from jackfield.transport.protocol import Utterance
from jackfield_scripted import ScriptedModel

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.transport_contract.stage import INSTRUCTIONS, TOOLS, Stage, on_a_loop

_ANSWER = "The lighthouse opens at ten and closes at six."


async def _greets(model: ScriptedModel) -> None:
    await model.hears()
    await model.says(_ANSWER, pieces=4)


class TalkTests:
    """A conversation without tools."""

    @on_a_loop
    async def test_an_answer_comes_in_pieces_and_whole(self, stage: Stage) -> None:
        """The pieces come as they are made, in order, and one TurnComplete after them."""
        async with stage.talk(_greets) as talk:
            await talk.says("When do you open?")
            same(talk.ear.words(), _ANSWER, "what the model said")
            pieces = len(talk.ear.of(TextDelta)) or len(talk.ear.of(Transcript))
            holds(pieces > 1, f"an answer in four pieces came as {pieces}")
            events = await talk.closes()
            same(len([each for each in events if isinstance(each, TurnComplete)]), 1, "turns completed")
            last = max(n for n, each in enumerate(events) if isinstance(each, TextDelta | Transcript))
            ended = next(n for n, each in enumerate(events) if isinstance(each, TurnComplete))
            holds(last < ended, "the turn was complete before its last words")

    @on_a_loop
    async def test_the_model_gets_words_instructions_and_tools(self, stage: Stage) -> None:
        """What the user says, what the model is to be, and every tool by its name on the wire."""
        heard: list[str] = []

        async def listens(model: ScriptedModel) -> None:
            heard.append((await model.hears()).text)
            await model.says("Yes.")

        async with stage.talk(listens) as talk:
            await talk.says("Is it 10 o'clock: «already»? 灯台")
            same(heard, ["Is it 10 o'clock: «already»? 灯台"], "what the model heard")
            holds(INSTRUCTIONS in talk.model.instructions, "the instructions did not reach the model")
            same(len(talk.model.tools), len(TOOLS), "how many tools the model was given")

    @on_a_loop
    async def test_turns_follow_each_other(self, stage: Stage) -> None:
        """Every message gets its own answer."""
        heard: list[str] = []

        async def echoes(model: ScriptedModel) -> None:
            for _ in range(3):
                said = (await model.hears()).text
                heard.append(said)
                await model.says(f"You said {said} ")

        async with stage.talk(echoes) as talk:
            for said in ("one", "two", "three"):
                await talk.says(said)
            same(heard, ["one", "two", "three"], "what the model heard")
            same(talk.ear.words(), "You said one You said two You said three ", "what the model said")

    @on_a_loop
    async def test_what_was_said_before_is_known(self, stage: Stage) -> None:
        """A new connection of an old conversation begins with what was said, in its order."""
        history = (
            Utterance("user", "My name is Ada."),
            Utterance("assistant", "Good day, Ada."),
            Utterance("user", "I like ships."),
            Utterance("assistant", "So do I."),
        )
        async with stage.talk(_greets, history=history) as talk:
            await talk.says("What is my name?")
            received = orjson.dumps(talk.model.received).decode()
            places = [received.find(each.text) for each in history]
            holds(min(places) >= 0, f"what was said before did not reach the model: {received:.600}")
            same(places, sorted(places), "the order in which it reached the model")
            same(received.count("My name is Ada."), 1, "how often it reached the model")

    @on_a_loop
    async def test_context_reaches_the_model_in_silence(self, stage: Stage) -> None:
        """What the model should know comes before the next message, and is not answered by itself."""
        async with stage.talk(_greets) as talk:
            await talk.connection.send_context("The museum is closed on Mondays.")
            await talk.says("When do you open?")
            received = orjson.dumps(talk.model.received).decode()
            known, asked = received.find("closed on Mondays"), received.find("When do you open?")
            holds(0 <= known < asked, "the context did not reach the model before the message after it")
            same(len(talk.ear.of(TurnComplete)), 1, "turns completed")

    @on_a_loop
    async def test_context_can_ask_for_an_answer(self, stage: Stage) -> None:
        """With `respond` the model speaks without a message of the user."""
        async with stage.talk(_greets) as talk:
            await talk.connection.send_context("The photo has been uploaded.", respond=True)
            await talk.ear.next(TurnComplete)
            same(talk.ear.words(), _ANSWER, "what the model said")

    @on_a_loop
    async def test_usage_is_reported(self, stage: Stage) -> None:
        """Tokens in and out, for what they cost."""
        async with stage.talk(_greets) as talk:
            await talk.says("When do you open?")
            events = await talk.closes()
            usage = [each for each in events if isinstance(each, Usage)]
            holds(usage, "no Usage came")
            holds(all(each.input_tokens > 0 and each.output_tokens > 0 for each in usage), f"it says {usage}")

    @on_a_loop
    async def test_slow_and_split_frames(self, stage: Stage) -> None:
        """What arrives in crumbs is what was sent."""
        answer = "Ünïcode crumbs: 灯台, one, two, three."

        async def speaks(model: ScriptedModel) -> None:
            await model.hears()
            await model.says(answer)

        async with stage.talk(speaks, split=7 if stage.mode == "text" else 400, delay=0.0002) as talk:
            await talk.says("Say it slowly.")
            same(talk.ear.words(), answer, "what the model said")
