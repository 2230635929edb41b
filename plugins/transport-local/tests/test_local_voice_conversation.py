"""Voice in a live session, which decides what was played and where to cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

from jackfield import Mode
from jackfield.orchestrator import Observers
from jackfield.protocol.close_codes import ENDED, CloseReason
from jackfield.registry.registry import ToolCatalog
from jackfield.runtime import Runtime
from jackfield.session.session import Session, State
from jackfield.store import MemoryStore
from jackfield.transport.events import TextDelta
from jackfield.transport.protocol import Connection, ConnectionConfig
from jackfield_local.connection import AnswerPart
from jackfield_local.voice.connection import VoiceConnection
from jackfield_local.voice.engines import load_engines
from jackfield_sessions.hub import ClientQueue
from jackfield_sessions.live_session import LiveSession
from local_voice_line import Dialogue, Plan, bare, on_a_loop, saying, silence, speech

SPEECH = "speech"
"""How a piece of sound stands among the messages."""

STORY = "Once upon a time there was an old lighthouse by the sea. Its keeper was called Martha."


class _Transport:
    modes: frozenset[Mode] = frozenset(("voice",))

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue

    def adapter(self, mode: Mode) -> str:
        return "local"

    async def connect(self, opening: ConnectionConfig) -> Connection:
        return VoiceConnection(self._dialogue, load_engines(), opening.voice)

    async def close(self) -> None:
        """Nothing is shared."""


class _Caller(ClientQueue):
    """A user at a client that plays what comes."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(limit=0)
        self.dialogue = Dialogue(plan)
        self.got: list[dict[str, Any]] = []
        self._news = asyncio.Event()
        self.session = Session("voice", "1.0.0", session_id="s-1", user="ann")
        self.live = LiveSession(
            cast("Runtime", _runtime()), self.session, _Transport(self.dialogue), instructions=""
        )

    def send(self, message: Mapping[str, Any] | str) -> None:
        self.got.append(json.loads(message) if isinstance(message, str) else dict(message))
        self._news.set()

    def send_audio(self, item: str, pcm: bytes) -> None:
        self.send({"type": SPEECH, "item": item, "bytes": len(pcm)})

    def close(self, closing: CloseReason) -> None:
        super().close(closing)
        self._news.set()

    async def say(self, pcm: bytes) -> None:
        for place in range(0, len(pcm), 960):
            await self.live.send_audio(pcm[place : place + 960])

    async def call(self) -> None:
        """Begin the session; whatever fails in it shows where the test waits."""
        self.live.attach(self)
        await self.live.open()
        self.live.start()

    async def until(self, kind: str, count: int = 1) -> None:
        while len(self.of(kind)) < count:
            assert self.closing is None, f"the session ended: {self.closing}"
            self._news.clear()
            await self._news.wait()

    async def hang_up(self) -> CloseReason:
        await self.live.close()
        return await self.live.wait_closed()

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [message for message in self.got if message["type"] in kinds]

    def messages(self, speaker: str = "") -> list[str]:
        """What was said, as a model that takes over is told."""
        history = self.live.checkpoint.history.messages
        return [each.text for each in history if speaker in ("", each.speaker)]

    @property
    def item(self) -> str:
        return str(self.of(SPEECH)[-1]["item"])


class _Registry(ToolCatalog):
    """Offers no tools."""

    def catalog(self, _: object) -> ToolCatalog:
        return self


def _runtime() -> SimpleNamespace:
    async def begin_turn(*_: Any) -> None:
        """There are no tools, so there is nothing to count."""

    registry = _Registry({})
    orchestrator = SimpleNamespace(interrupt=lambda *_: None, observers=Observers())
    return SimpleNamespace(
        store=MemoryStore(), begin_turn=begin_turn, registry=registry, orchestrator=orchestrator
    )


@on_a_loop
async def test_a_user_interrupts_while_the_answer_still_plays() -> None:
    caller = _Caller(saying(STORY, "Fine, I stop."))
    await caller.call()
    await caller.say(silence(200) + speech("Tell me a story.") + silence(700))
    await caller.until("turn_complete")
    assert caller.session.state is State.LISTENING
    caller.live.report_playback(caller.item, 2500)
    await caller.say(silence(200) + speech("Please stop.") + silence(700))
    await caller.until("turn_complete", 2)
    assert [kind for kind, _ in caller.dialogue.told] == ["user", "interrupted", "user"]
    assert caller.dialogue.of("interrupted") == [True]
    said = caller.messages()
    assert [bare(said[0]), bare(said[2]), said[3]] == ["tell me a story", "please stop", "Fine, I stop."]
    assert said[1].startswith("Once upon a time")
    assert "Martha" not in said[1]
    assert not caller.of("interrupted")
    assert await caller.hang_up() is ENDED


@on_a_loop
async def test_stop_said_aloud_leaves_silence() -> None:
    """An empty answer is an answer: no error, no filler, and the session listens."""

    async def plan(asked: str) -> AsyncIterator[AnswerPart]:
        if bare(asked) != "stop":
            yield TextDelta(STORY)

    caller = _Caller(plan)
    await caller.call()
    await caller.say(silence(200) + speech("Tell me a story.") + silence(700))
    await caller.until("turn_complete")
    caller.live.report_playback(caller.item, 2500)
    before = len(caller.of(SPEECH, "notification"))
    await caller.say(silence(200) + speech("Stop.") + silence(700))
    await caller.until("turn_complete", 2)
    assert caller.dialogue.asked[-1] == "stop"
    assert len(caller.of(SPEECH, "notification")) == before
    assert caller.session.state is State.LISTENING
    assert [bare(text) for text in caller.messages("user")] == ["tell me a story", "stop"]
    await caller.say(silence(200) + speech("Tell me a story.") + silence(700))
    await caller.until("turn_complete", 3)
    assert caller.messages()[-1] == STORY
    await caller.hang_up()


@on_a_loop
async def test_stop_in_writing_silences_what_still_plays() -> None:
    async def plan(asked: str) -> AsyncIterator[AnswerPart]:
        if asked != "stop":
            yield TextDelta(STORY)

    caller = _Caller(plan)
    await caller.call()
    await caller.live.send_text("Tell me a story.")
    await caller.until("turn_complete")
    caller.live.report_playback(caller.item, 2500)
    await caller.live.send_text("stop")
    await caller.until("turn_complete", 2)
    kinds = [each["type"] for each in caller.of("turn_complete", "interrupted", "notification")]
    assert kinds == ["turn_complete", "interrupted", "turn_complete"]
    assert caller.session.state is State.LISTENING
    said = caller.messages()
    assert said[1].startswith("Once upon a time")
    assert "Martha" not in said[1]
    assert said[2] == "stop"
    await caller.hang_up()


@on_a_loop
async def test_an_interrupt_while_the_agent_thinks_brings_the_session_back_to_listening() -> None:
    thinking = asyncio.Event()

    async def plan(asked: str) -> AsyncIterator[AnswerPart]:
        thinking.set()
        if bare(asked) == "think about it":
            await asyncio.Event().wait()
        yield TextDelta("Yes.")

    caller = _Caller(plan)
    await caller.call()
    await caller.say(silence(200) + speech("Think about it.") + silence(700))
    await thinking.wait()
    assert caller.session.state.value == "processing"
    await caller.live.interrupt()
    await caller.until("interrupted")
    await asyncio.sleep(1.4)  # Longer than the dead air that a filler would end.
    assert caller.session.state is State.LISTENING
    assert not caller.of(SPEECH, "notification")
    await caller.say(silence(200) + speech("Are you there?") + silence(700))
    await caller.until("turn_complete")
    assert caller.messages()[-1] == "Yes."
    await caller.hang_up()


@on_a_loop
async def test_a_filler_is_heard_but_not_remembered() -> None:
    go = asyncio.Event()

    async def plan(_: str) -> AsyncIterator[AnswerPart]:
        await go.wait()
        yield TextDelta("Yes.")

    caller = _Caller(plan)
    await caller.call()
    await caller.say(silence(200) + speech("Think about it.") + silence(700))
    await caller.until(SPEECH)
    assert caller.item == "filler-1"
    assert caller.session.state is State.PROCESSING
    caller.live.report_playback(caller.item, 200)
    await caller.say(silence(200) + speech("Are you there?") + silence(700))
    go.set()
    await caller.until("turn_complete")
    assert caller.messages("assistant") == ["Yes."]
    await caller.hang_up()


@on_a_loop
async def test_a_user_types_in_the_middle_of_an_answer() -> None:
    async def plan(asked: str) -> AsyncIterator[AnswerPart]:
        yield TextDelta(STORY + " " if asked == "Tell me a story." else "Of course.")
        if asked == "Tell me a story.":
            await asyncio.Event().wait()

    caller = _Caller(plan)
    await caller.call()
    await caller.live.send_text("Tell me a story.")
    await caller.until(SPEECH)
    caller.live.report_playback(caller.item, 500)
    await caller.live.send_text("Something else, please.")
    await caller.until("turn_complete")
    assert len(caller.of("interrupted")) == 1
    assert [kind for kind, _ in caller.dialogue.told] == ["user", "interrupted", "user"]
    assert caller.messages()[-1] == "Of course."
    assert caller.session.state is State.LISTENING
    await caller.hang_up()
