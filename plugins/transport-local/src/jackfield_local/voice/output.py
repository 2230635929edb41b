"""Speech output: answers are synthesised sentence by sentence, and it is known which words were heard."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

from jackfield.transport.events import Audio, Event, ToolCalls, Transcript, TurnComplete
from jackfield.transport.queue import EventQueue

from jackfield_local.mind import Thought, Words
from jackfield_local.voice.engines import SPEAKING_RATE, Speech, Synthesiser
from jackfield_local.voice.sentences import Sentences
from jackfield_local.voice.speakable import Script, script

BYTES_PER_MS = SPEAKING_RATE * 2 // 1000

CHUNK = 40 * BYTES_PER_MS
"""Bytes of sound in one event: 40 ms, so that little is under way when the user interrupts."""

FILLER = "One moment."

FILLER_SECONDS = 1.2
"""How long an answer may take before the filler. With the silence that ended the user's turn that makes
almost two seconds, after which people ask whether anybody is there."""

_SILENCE = Speech(b"", ())


class Spoken:
    """What was said in one turn: its text, and the place in its sound at which each word ends."""

    def __init__(self, item: str) -> None:
        self.item = item
        self.text = ""
        self.size = 0
        """Bytes of sound."""
        self._ends: list[int] = []
        self._reached: list[int] = []

    def add(self, sentence: str, script: Script, speech: Speech) -> None:
        """Add a sentence that is sent."""
        for end, reached in zip(speech.ends, script.reached, strict=True):
            self._ends.append(self.size + end)
            self._reached.append(len(self.text) + reached)
        self.size += len(speech.pcm)
        self.text += sentence
        if not script.words and self._reached:
            self._reached[-1] = len(self.text)  # What is not said belongs to the word before it.

    def withdraw(self, size: int) -> None:
        """Note that so many bytes at the end were not sent after all."""
        self.size -= size

    def heard(self, ms: int | None = None) -> str:
        """The text of the words that were heard whole after so long; without it, of all that was sent."""
        place = self.size if ms is None else min(max(ms, 0) * BYTES_PER_MS, self.size)
        count = bisect_right(self._ends, place)
        if count == len(self._ends):
            return self.text.strip()
        return self.text[: self._reached[count - 1]].strip() if count else ""

    def whole(self, ms: int) -> bool:
        """Whether everything that was sent was heard; the last millisecond may be a part of one."""
        return (ms + 1) * BYTES_PER_MS > self.size


class SpeechOutput:
    """The voice of one connection: an answer, or a filler while the user waits for one."""

    def __init__(self, synthesiser: Synthesiser, events: EventQueue, *, transcribe: bool) -> None:
        self._synthesiser = synthesiser
        self._events = events
        self._transcribe = transcribe
        self._turns = 0
        self._fillers = 0
        self._filler: asyncio.Task[None] | None = None
        self.awaited = False
        """Whether the user waits for an answer, and has heard no filler since asking."""
        self.spoken = Spoken("")
        """What was said in this turn so far."""

    def begin_turn(self) -> None:
        """What is said from now on is another turn."""
        self._turns += 1
        self.spoken = Spoken(f"turn-{self._turns}")

    async def say(self, thoughts: AsyncIterator[Thought]) -> ToolCalls | None:
        """Say an answer to its end; the calls in which it ends, or None when the turn is complete."""
        sentences = Sentences()
        calls: ToolCalls | None = None
        try:
            async with aclosing(thoughts):  # type: ignore[type-var]  # dialogues answer with generators
                async for thought in thoughts:
                    if isinstance(thought, ToolCalls):
                        calls = thought
                        break
                    if isinstance(thought, Words):  # Forms are shown in text sessions only.
                        for sentence in sentences.add(thought.text):
                            await self._say(sentence)
            for sentence in sentences.flush():
                await self._say(sentence)
        finally:
            if calls is None:  # With calls the user goes on waiting, and so does the filler.
                await self.stop_filler()
        if calls is None and self.spoken.text:
            await self._write(self.spoken.text, final=True)
        return calls

    def withdraw(self) -> int:
        """Withdraw speech that has not been read yet; returns how many bytes of an answer."""
        sound = self._events.remove(lambda event: isinstance(event, Audio))
        if sound:
            self._events.remove(_belongs_to_speech)
        unheard = sum(len(each.pcm) for each in sound if isinstance(each, Audio) and not each.filler)
        self.spoken.withdraw(unheard)
        return unheard

    def start_filler(self, text: str = FILLER, *, after: float = 0.0) -> None:
        """Say a filler after so many seconds, once for each time that the user waits."""
        if self.awaited and (self._filler is None or self._filler.done()):
            self._filler = asyncio.create_task(self._say_filler(text, after))

    async def stop_filler(self) -> None:
        """The answer is there, or nobody wants one: a filler that was not sent yet is not said."""
        if self._filler is not None:
            self._filler.cancel()
            await asyncio.wait((self._filler,))

    async def _say(self, sentence: str) -> None:
        await self.stop_filler()
        said = script(sentence)
        speech = await asyncio.to_thread(self._synthesiser.say, said.words) if said.words else _SILENCE
        self.spoken.add(sentence, said, speech)
        await self._write(sentence, final=False)
        for pcm in _chunks(speech.pcm):
            await self._events.put(Audio(pcm, self.spoken.item))

    async def _write(self, text: str, *, final: bool) -> None:
        if self._transcribe:
            await self._events.put(Transcript("assistant", text, final=final, item=self.spoken.item))

    async def _say_filler(self, text: str, after: float) -> None:
        await asyncio.sleep(after)
        speech = await asyncio.to_thread(self._synthesiser.say, script(text).words)
        self.awaited = False
        self._fillers += 1
        for pcm in _chunks(speech.pcm):
            self._events.put_nowait(Audio(pcm, f"filler-{self._fillers}", filler=True))


def _chunks(pcm: bytes) -> Iterator[bytes]:
    for place in range(0, len(pcm), CHUNK):
        yield pcm[place : place + CHUNK]


def _belongs_to_speech(event: Event) -> bool:
    return isinstance(event, TurnComplete) or (isinstance(event, Transcript) and event.speaker == "assistant")
