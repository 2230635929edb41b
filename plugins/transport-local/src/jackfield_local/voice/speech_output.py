"""Speech output: speaks answers sentence by sentence, and a filler while the user waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing

from jackfield.transport.events import Audio, Event, TextDelta, ToolCalls, Transcript, TurnComplete
from jackfield.transport.queue import EventQueue
from jackfield_language.pronunciation import pronounceable
from jackfield_language.text import split_sentences

from jackfield_local.connection import AnswerPart
from jackfield_local.voice.engines import SPEAKING_RATE

BYTES_PER_MS = SPEAKING_RATE * 2 // 1000

CHUNK = 40 * BYTES_PER_MS
"""Bytes of audio in one event: 40 ms, so that little is in flight when the user interrupts."""

FILLER = "One moment."

FILLER_SECONDS = 1.2
"""How long an answer may take before the filler is spoken. Together with the silence that ended the user's
turn, that is almost two seconds; after that, people ask whether the agent is still there."""

HEARD_MS = 300  # Less audio than this does not contain a whole word.


class SpeechOutput:
    """The voice of one connection: an answer, or a filler while the user waits for one."""

    def __init__(self, synthesise: Callable[[str], bytes], events: EventQueue, *, transcribe: bool) -> None:
        self._engine = synthesise
        self._events = events
        self._transcribe = transcribe
        self._turns = 0
        self._text = ""
        self._size = 0
        self._fillers = 0
        self._filler: asyncio.Task[None] | None = None
        self.awaited = False
        """True if the user waits for an answer, and has heard no filler since asking."""
        self.item = ""
        """The item that the audio of this turn belongs to."""

    def begin_turn(self) -> None:
        """Begin another turn; later speech belongs to it."""
        self._turns += 1
        self.item, self._text, self._size = f"turn-{self._turns}", "", 0

    async def say(self, answer: AsyncIterator[AnswerPart]) -> ToolCalls | None:
        """Speak an answer to its end; return the calls that it ends with, or None if the turn is complete."""
        unsaid = ""
        calls: ToolCalls | None = None
        try:
            async with aclosing(answer):  # type: ignore[type-var]  # dialogues answer with generators
                async for part in answer:
                    if isinstance(part, ToolCalls):
                        calls = part
                        break
                    if isinstance(part, TextDelta):  # Forms are shown in text sessions only.
                        # The last sentence may be incomplete.
                        *complete, unsaid = split_sentences(unsaid + part.text)
                        for sentence in complete:
                            await self._say(sentence)
            if unsaid:
                await self._say(unsaid)
        finally:
            if calls is None:  # After calls the user still waits, so the filler stays pending.
                await self.stop_filler()
        if calls is None and self._text:
            await self._write(self._text, final=True)
        return calls

    def withdraw(self) -> int:
        """Withdraw speech that is still in the queue; return how many bytes of an answer were withdrawn."""
        audio = self._events.remove(lambda event: isinstance(event, Audio))
        if audio:
            self._events.remove(_belongs_to_speech)
        unread = sum(len(each.pcm) for each in audio if isinstance(each, Audio) and not each.filler)
        self._size -= unread
        return unread

    def is_heard(self, played_ms: int | None = None) -> bool:
        """Return whether the user heard part of this turn, given the time played (default: all sent)."""
        played = self._size if played_ms is None else min(played_ms * BYTES_PER_MS, self._size)
        return played >= HEARD_MS * BYTES_PER_MS

    def is_complete(self, played_ms: int) -> bool:
        """Return whether everything that was sent has been played; the last millisecond may be incomplete."""
        return (played_ms + 1) * BYTES_PER_MS > self._size

    def start_filler(self, text: str = FILLER, *, after: float = 0.0) -> None:
        """Speak a filler after this many seconds, once each time the user waits."""
        if self.awaited and (self._filler is None or self._filler.done()):
            self._filler = asyncio.create_task(self._say_filler(text, after))

    async def stop_filler(self) -> None:
        """Cancel a filler that was not sent yet, because the answer came or was interrupted."""
        if self._filler is not None:
            self._filler.cancel()
            await asyncio.wait((self._filler,))

    async def _say(self, sentence: str) -> None:
        await self.stop_filler()
        pcm = await self._synthesise(sentence)
        self._text += sentence
        self._size += len(pcm)
        await self._write(sentence, final=False)
        for chunk in _chunks(pcm):
            await self._events.put(Audio(chunk, self.item))

    async def _synthesise(self, sentence: str) -> bytes:
        spoken = pronounceable(sentence)
        return await asyncio.to_thread(self._engine, spoken) if spoken else b""

    async def _write(self, text: str, *, final: bool) -> None:
        if self._transcribe:
            await self._events.put(Transcript("assistant", text, final=final, item=self.item))

    async def _say_filler(self, text: str, after: float) -> None:
        await asyncio.sleep(after)
        pcm = await self._synthesise(text)
        self.awaited = False
        self._fillers += 1
        for chunk in _chunks(pcm):
            self._events.put_nowait(Audio(chunk, f"filler-{self._fillers}", filler=True))


def _chunks(pcm: bytes) -> Iterator[bytes]:
    for place in range(0, len(pcm), CHUNK):
        yield pcm[place : place + CHUNK]


def _belongs_to_speech(event: Event) -> bool:
    return isinstance(event, TurnComplete) or (isinstance(event, Transcript) and event.speaker == "assistant")
