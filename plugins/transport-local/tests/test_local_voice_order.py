"""Whatever both sides do in whatever order: the line stays alive, and its events make sense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jackfield.transport.events import (
    Audio,
    Closed,
    Event,
    Interrupted,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCalls,
    Transcript,
    TurnComplete,
)
from jackfield.transport.protocol import ToolResult
from jackfield_local.connection import AnswerPart
from jackfield_local.voice.engines import Samples, SpeechEngines
from jackfield_scripted.audio import silence, tone
from local_voice_line import Line, call, line
from local_voice_script import LoudIsSpeech

STEPS = (
    *("type", "ask for a call", "speak", "mumble", "fall silent", "interrupt", "truncate"),
    *("answer the call", "answer quietly", "context", "speak of it", "breathe", "wait"),
)


class _Words:
    """Writes down long sounds as words, short ones as nothing."""

    def transcribe(self, samples: Samples) -> str:
        return "spoken" if len(samples) > 16 * 600 else ""

    def synthesise(self, text: str) -> bytes:
        return tone(60 * len(text.split()))


async def _plan(asked: str) -> AsyncIterator[AnswerPart]:
    yield TextDelta("Well then. ")
    await asyncio.sleep(0)
    if "call" in asked:
        yield call()
        return
    for _ in range(3):
        yield TextDelta("One sentence follows the other. ")
        await asyncio.sleep(0)


async def _step(talk: Line, step: str) -> None:
    connection = talk.connection
    results = [ToolResult("call-1", "look_up", b"{}")]
    items = [each.item for each in talk.of(Audio)] or ["turn-1"]
    acts: dict[str, Callable[[], Awaitable[None]]] = {
        "type": lambda: connection.send_text("typed"),
        "ask for a call": lambda: connection.send_text("call"),
        "speak": lambda: talk.hear(tone(700)),
        "mumble": lambda: talk.hear(tone(250) + silence(600)),
        "fall silent": lambda: talk.hear(silence(600)),
        "interrupt": connection.interrupt,
        "truncate": lambda: connection.truncate(items[-1], 100),
        "answer the call": lambda: connection.send_results(results),
        "answer quietly": lambda: connection.send_results(results, respond=False),
        "context": lambda: connection.send_context("Something happened."),
        "speak of it": lambda: connection.send_context("Something happened.", respond=True),
        "breathe": lambda: asyncio.sleep(0),
        "wait": lambda: asyncio.sleep(0.005),
    }
    await acts[step]()


def _check(events: list[Event]) -> None:
    speaking = False
    for event in events:
        if isinstance(event, SpeechStarted | SpeechStopped):
            assert speaking is isinstance(event, SpeechStopped)
            speaking = not speaking
        assert not (speaking and isinstance(event, Audio | TurnComplete)), (
            "the agent must not talk over the user"
        )
    assert [isinstance(event, Closed) for event in events] == [False] * (len(events) - 1) + [True]
    for event, after in pairwise(events):
        cut = isinstance(event, Interrupted)
        assert not (cut and isinstance(after, Audio | TurnComplete)), "what was interrupted went on"
    finals = [event.item for event in events if isinstance(event, Transcript) and event.final]
    assistant = [item for item in finals if item.startswith("turn-")]
    assert len(assistant) == len(set(assistant)), "a turn is told whole once"


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(STEPS), max_size=14))
def test_the_connection_survives_any_order_of_events(steps: list[str]) -> None:
    async def run() -> None:
        engine = _Words()
        async with line(
            _plan, having=SpeechEngines(LoudIsSpeech, engine.transcribe, engine.synthesise)
        ) as talk:
            for step in steps:
                await _step(talk, step)
            await talk.hear(silence(600))
            await talk.listened()
            await talk.connection.send_text("last")
            while not talk.dialogue.asked or "last" not in talk.dialogue.asked[-1]:
                await talk.connection.send_results([ToolResult("call-1", "look_up", b"{}")])
                await asyncio.sleep(0.002)
            place = len(talk.events)
            if "call" in talk.dialogue.asked[-1]:
                await talk.until(
                    lambda: any(isinstance(each, ToolCalls) for each in talk.events[place - 1 :])
                )
                await talk.connection.send_results([ToolResult("call-1", "look_up", b"{}")])
            await talk.until(lambda: talk.events and isinstance(talk.events[-1], TurnComplete))
        _check(talk.events)

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await run()

    asyncio.run(bounded())
