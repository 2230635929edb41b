"""Voice under a conversation of the kernel, which decides what was heard and when to cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

from jackfield import Mode
from jackfield.runtime import Runtime
from jackfield.session.machine import State
from jackfield.session.session import Session
from jackfield.store import MemoryStore
from jackfield.transport.events import Audio, Closed, Event, Interrupted, Transcript, TurnComplete
from jackfield.transport.protocol import Connection, Opening
from jackfield_local.mind import Thought, Words
from jackfield_local.models.speech import engines
from jackfield_local.voice.connection import VoiceConnection
from jackfield_sessions.conversation import Conversation
from jackfield_sessions.notices import Notice
from local_voice_line import Dialogue, Plan, bare, on_a_loop, saying, silence, speech

STORY = "Once upon a time there was an old lighthouse by the sea. Its keeper was called Martha."


class _Transport:
    modes: frozenset[Mode] = frozenset(("voice",))

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue

    def adapter(self, mode: Mode) -> str:
        return "local"

    async def connect(self, opening: Opening) -> Connection:
        return VoiceConnection(self._dialogue, engines(), opening.voice)

    async def close(self) -> None:
        """Nothing is shared."""


class _Caller:
    """A user at a client that plays what comes."""

    def __init__(self, plan: Plan) -> None:
        self.dialogue = Dialogue(plan)
        self.got: list[Event | Notice] = []
        self._news = asyncio.Event()
        self.session = Session("voice", "1.0.0", session_id="s-1", user="ann", publish=self._published)
        self.conversation = Conversation(
            cast("Runtime", _runtime()),
            self.session,
            _Transport(self.dialogue),
            self._deliver,
            instructions="",
        )

    def _published(self, event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
        """The client's other channel is not looked at."""

    async def _deliver(self, event: Event | Notice) -> None:
        self.got.append(event)
        self._news.set()

    async def say(self, pcm: bytes) -> None:
        for place in range(0, len(pcm), 960):
            await self.conversation.listen(pcm[place : place + 960])

    async def call(self) -> None:
        """Open the line; whatever fails on it shows where the test waits."""
        await self.conversation.open()
        self._running = asyncio.create_task(self.conversation.run())
        self._running.add_done_callback(lambda _: self._news.set())

    async def until(self, kind: type, count: int = 1) -> None:
        while sum(isinstance(event, kind) for event in self.got) < count:
            if self._running.done():
                raise AssertionError(f"the line ended: {self._running.result()}")
            self._news.clear()
            await self._news.wait()

    async def hang_up(self) -> Closed:
        await self.conversation.close()
        return await self._running

    @property
    def item(self) -> str:
        return next(event.item for event in reversed(self.got) if isinstance(event, Audio))


def _runtime() -> SimpleNamespace:
    async def begin_turn(*_: Any) -> None:
        """There are no tools, so there is nothing to count."""

    registry = SimpleNamespace(provider_schemas=lambda *_: {}, offered=lambda _: [])
    orchestrator = SimpleNamespace(interrupt=lambda *_: None)
    return SimpleNamespace(
        store=MemoryStore(), begin_turn=begin_turn, registry=registry, orchestrator=orchestrator
    )


@on_a_loop
async def test_a_user_breaks_in_while_the_answer_still_plays() -> None:
    caller = _Caller(saying(STORY, "Fine, I stop."))
    await caller.call()
    await caller.say(silence(200) + speech("Tell me a story.") + silence(700))
    await caller.until(TurnComplete)
    assert caller.session.state is State.LISTENING
    caller.conversation.heard(caller.item, 2500)
    await caller.say(silence(200) + speech("Please stop.") + silence(700))
    await caller.until(TurnComplete, 2)
    assert [kind for kind, _ in caller.dialogue.told] == ["user", "interrupted", "user"]
    assert caller.dialogue.of("interrupted") == ["Once upon a time there was an old lighthouse"]
    said = [each.text for each in caller.conversation.memory.said]
    assert [bare(said[0]), bare(said[2]), said[3]] == ["tell me a story", "please stop", "Fine, I stop."]
    assert said[1].startswith("Once upon a time")
    assert "Martha" not in said[1]
    assert not [event for event in caller.got if isinstance(event, Interrupted)]
    assert (await caller.hang_up()).code == ""


@on_a_loop
async def test_stop_said_aloud_leaves_silence() -> None:
    """A mind that answers nothing has answered: no error, no filler, and the user is listened to."""

    async def plan(asked: str) -> AsyncIterator[Thought]:
        if bare(asked) != "stop":
            yield Words(STORY)

    caller = _Caller(plan)
    await caller.call()
    await caller.say(silence(200) + speech("Tell me a story.") + silence(700))
    await caller.until(TurnComplete)
    caller.conversation.heard(caller.item, 2500)
    before = len(caller.got)
    await caller.say(silence(200) + speech("Stop.") + silence(700))
    await caller.until(TurnComplete, 2)
    assert caller.dialogue.asked[-1] == "stop"
    assert not [each for each in caller.got[before:] if isinstance(each, Audio | Notice)]
    assert caller.session.state is State.LISTENING
    assert [bare(each.text) for each in caller.conversation.memory.said if each.speaker == "user"] == [
        *("tell me a story", "stop")
    ]
    await caller.say(silence(200) + speech("Tell me a story.") + silence(700))
    await caller.until(TurnComplete, 3)
    assert caller.conversation.memory.said[-1].text == STORY
    await caller.hang_up()


@on_a_loop
async def test_stop_in_writing_silences_what_still_plays() -> None:
    async def plan(asked: str) -> AsyncIterator[Thought]:
        if asked != "stop":
            yield Words(STORY)

    caller = _Caller(plan)
    await caller.call()
    await caller.conversation.say("Tell me a story.")
    await caller.until(TurnComplete)
    caller.conversation.heard(caller.item, 2500)
    await caller.conversation.say("stop")
    await caller.until(TurnComplete, 2)
    kinds = [type(each) for each in caller.got if not isinstance(each, Audio | Transcript)]
    assert kinds == [TurnComplete, Interrupted, TurnComplete]
    assert caller.session.state is State.LISTENING
    said = [each.text for each in caller.conversation.memory.said]
    assert said[1].startswith("Once upon a time")
    assert "Martha" not in said[1]
    assert said[2] == "stop"
    await caller.hang_up()


@on_a_loop
async def test_an_interrupt_while_the_agent_thinks_brings_the_session_back_to_listening() -> None:
    thinking = asyncio.Event()

    async def plan(asked: str) -> AsyncIterator[Thought]:
        thinking.set()
        if bare(asked) == "think about it":
            await asyncio.Event().wait()
        yield Words("Yes.")

    caller = _Caller(plan)
    await caller.call()
    await caller.say(silence(200) + speech("Think about it.") + silence(700))
    await thinking.wait()
    assert caller.session.state.value == "processing"
    await caller.conversation.interrupt()
    await caller.until(Interrupted)
    await asyncio.sleep(1.4)  # Longer than the dead air that a filler would end.
    assert caller.session.state is State.LISTENING
    assert not [each for each in caller.got if isinstance(each, Audio | Notice)]
    await caller.say(silence(200) + speech("Are you there?") + silence(700))
    await caller.until(TurnComplete)
    assert caller.conversation.memory.said[-1].text == "Yes."
    await caller.hang_up()


@on_a_loop
async def test_a_filler_is_heard_but_not_remembered() -> None:
    go = asyncio.Event()

    async def plan(_: str) -> AsyncIterator[Thought]:
        await go.wait()
        yield Words("Yes.")

    caller = _Caller(plan)
    await caller.call()
    await caller.say(silence(200) + speech("Think about it.") + silence(700))
    await caller.until(Audio)
    assert caller.item == "filler-1"
    assert caller.session.state is State.PROCESSING
    caller.conversation.heard(caller.item, 200)
    await caller.say(silence(200) + speech("Are you there?") + silence(700))
    go.set()
    await caller.until(TurnComplete)
    answers = [each.text for each in caller.conversation.memory.said if each.speaker == "assistant"]
    assert answers == ["Yes."]
    await caller.hang_up()


@on_a_loop
async def test_a_user_types_in_the_middle_of_an_answer() -> None:
    async def plan(asked: str) -> AsyncIterator[Thought]:
        yield Words(STORY + " " if asked == "Tell me a story." else "Of course.")
        if asked == "Tell me a story.":
            await asyncio.Event().wait()

    caller = _Caller(plan)
    await caller.call()
    await caller.conversation.say("Tell me a story.")
    await caller.until(Audio)
    caller.conversation.heard(caller.item, 500)
    await caller.conversation.say("Something else, please.")
    await caller.until(TurnComplete)
    assert len([event for event in caller.got if isinstance(event, Interrupted)]) == 1
    assert [kind for kind, _ in caller.dialogue.told] == ["user", "interrupted", "user"]
    assert caller.conversation.memory.said[-1].text == "Of course."
    assert caller.session.state is State.LISTENING
    await caller.hang_up()
