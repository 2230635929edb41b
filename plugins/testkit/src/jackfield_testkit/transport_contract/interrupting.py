"""Cutting the model short, from either side."""

from __future__ import annotations

from collections.abc import Sequence

from jackfield.transport.events import Audio, Interrupted, SpeechStarted, TextDelta, Transcript, TurnComplete
from jackfield_scripted import ScriptedModel
from jackfield_scripted.audio import milliseconds, tone

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.transport_contract.stage import Stage, Talk, on_a_loop

_LONG = " ".join(f"word{number}" for number in range(400))
_LAST = "word399"


async def _talks_long(model: ScriptedModel) -> None:
    await model.hears()
    await model.says(_LONG, pieces=400)
    await model.hears()
    await model.says("Yes?")


async def _speaks_long(model: ScriptedModel) -> None:
    await model.hears()
    await model.speaks("Once upon a time there was a keeper.", ms=2000)
    await model.hears()
    await model.says("Yes?")


class InterruptTests:
    """`interrupt`, as it is called when the user has enough."""

    @on_a_loop
    async def test_interrupting_silence_does_nothing(self, stage: Stage) -> None:
        """Before anything was said, after an answer, twice: the conversation just goes on."""

        async def answers(model: ScriptedModel) -> None:
            for number in range(2):
                await model.hears()
                await model.says(f"Answer {number}. ")

        async with stage.talk(answers) as talk:
            await talk.connection.interrupt()
            await talk.says("One.")
            await talk.connection.interrupt()
            await talk.connection.interrupt()
            await talk.says("Two.")
            same(talk.ear.words(), "Answer 0. Answer 1. ", "what the model said")
            same(talk.ear.of(Interrupted), [], "interruptions of silence")

    @on_a_loop
    async def test_interrupt_stops_the_model(self, stage: Stage) -> None:
        """The rest does not come, Interrupted does, and the next message is answered."""
        text = stage.mode == "text"
        script = _talks_long if text else _speaks_long
        async with stage.talk(script, split=256 if text else 0, delay=0.004 if text else 0.0) as talk:
            await talk.connection.send_text("Tell me a story.")
            await talk.ear.next(TextDelta if text else Audio)
            await talk.connection.interrupt()
            await talk.ear.next(Interrupted)
            count = _said(talk)
            await talk.connection.send_text("Stop.")
            await talk.ear.next(TurnComplete)
            holds("Yes?" in talk.ear.words(), "the next message was not answered")
            holds(_LAST not in talk.ear.words(), "the model went on to the end")
            after = talk.ear.events[_place(talk) :]
            holds(count == _said(talk, after), "words of the interrupted answer came after Interrupted")

    @on_a_loop
    async def test_interrupting_twice_interrupts_once(self, stage: Stage) -> None:
        """A second interrupt before the first took effect is harmless."""
        text = stage.mode == "text"
        script = _talks_long if text else _speaks_long
        async with stage.talk(script, split=256 if text else 0, delay=0.004 if text else 0.0) as talk:
            await talk.connection.send_text("Tell me a story.")
            await talk.ear.next(TextDelta if text else Audio)
            await talk.connection.interrupt()
            await talk.connection.interrupt()
            await talk.ear.next(Interrupted)
            await talk.connection.send_text("Stop.")
            await talk.ear.next(TurnComplete)
            same(len(talk.ear.of(Interrupted)), 1, "interruptions")


class BargeInTests:
    """The user speaks while the model does."""

    @on_a_loop
    async def test_a_barge_in_cuts_at_what_was_heard(self, stage: Stage) -> None:
        """The speech is noticed, the answer is cut short, and the model remembers what was heard of it."""
        async with stage.talk(_barge_in := _BargeIn()) as talk:
            item = await _interrupted(talk)
            await talk.connection.interrupt()
            await talk.connection.truncate(item, 740)
            await _barge_in.over(talk)
            same(_barge_in.heard_ms, 740, "the milliseconds that the model takes for heard")

    @on_a_loop
    async def test_truncating_beyond_the_end_is_cut_to_it(self, stage: Stage) -> None:
        """A player that counts too far makes no error of it."""
        async with stage.talk(_barge_in := _BargeIn()) as talk:
            item = await _interrupted(talk)
            sent = milliseconds(sum(len(each.pcm) for each in talk.ear.of(Audio)))
            await talk.connection.truncate(item, 10_000_000)
            await _barge_in.over(talk)
            holds(sent - 1 <= _barge_in.heard_ms <= sent, f"{_barge_in.heard_ms} of {sent} ms were taken")

    @on_a_loop
    async def test_nothing_heard_deletes_the_item(self, stage: Stage) -> None:
        """What nobody heard was not said."""
        async with stage.talk(_barge_in := _BargeIn()) as talk:
            item = await _interrupted(talk)
            await talk.connection.truncate(item, 0)
            await _barge_in.over(talk)
            same(_barge_in.heard_ms, 0, "the milliseconds that the model takes for heard")

    @on_a_loop
    async def test_truncating_what_is_not_there_is_harmless(self, stage: Stage) -> None:
        """An item that never was is passed over."""
        async with stage.talk(_barge_in := _BargeIn()) as talk:
            item = await _interrupted(talk)
            await talk.connection.truncate("item_of_another_day", 100)
            await talk.connection.truncate(item, 100)
            await _barge_in.over(talk)
            same(_barge_in.heard_ms, 100, "the milliseconds that the model takes for heard")


class _BargeIn:
    """Speaks, is interrupted, learns what was heard, and answers what is said then."""

    def __init__(self) -> None:
        self.heard_ms = -1

    async def __call__(self, model: ScriptedModel) -> None:
        await model.hears()
        await model.speaks("Once upon a time there was a keeper.", ms=2000)
        await model.is_interrupted()
        self.heard_ms = await model.truncated()
        await model.hears_speech("Stop, please.")
        await model.says("Go on, then.")

    async def over(self, talk: Talk) -> None:
        """Wait until the model knows what was heard and has answered."""
        await talk.connection.send_audio(tone(400))
        while "Go on, then." not in talk.ear.words():
            await talk.ear.next(TurnComplete)


async def _interrupted(talk: Talk) -> str:
    """Start the story and wait until it is cut short; the item that was cut."""
    await talk.connection.send_text("Tell me a story.")
    await talk.ear.next(SpeechStarted)
    await talk.ear.next(Interrupted)
    return talk.ear.of(Audio)[-1].item


def _said(talk: Talk, events: Sequence[object] = ()) -> int:
    """How many pieces of the story came, up to Interrupted or, with `events`, with those after it."""
    before = talk.ear.events[: _place(talk)]
    return sum(_story(each) for each in [*before, *events])


def _story(event: object) -> bool:
    if isinstance(event, TextDelta):
        return event.text.strip().startswith("word")
    return isinstance(event, Transcript) and "Once" in event.text and not event.final


def _place(talk: Talk) -> int:
    return next(n for n, each in enumerate(talk.ear.events) if isinstance(each, Interrupted)) + 1
