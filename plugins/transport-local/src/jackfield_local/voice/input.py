"""Speech input: the user's turns are detected, transcribed while they last, and transcribed when they end."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import takewhile

import numpy as np
import samplerate  # type: ignore[import-not-found]
from jackfield.transport.events import SpeechStopped, Transcript
from jackfield.transport.protocol import VoiceSettings
from jackfield.transport.queue import EventQueue

from jackfield_local.voice.engines import FRAME, HEARING_RATE, SPEAKING_RATE, Engines, Samples
from jackfield_local.voice.turns import Moment, Turns

_log = logging.getLogger(__name__)

LONGEST_CHUNK = SPEAKING_RATE  # Bytes judged at once, half a second, so that others get their turn.
MOST_CHUNKS = 100  # Two seconds, as a browser sends them; then the sender has to wait.
GONE_SECONDS = 1.0  # A microphone that sends nothing for so long in the middle of speech was closed.
DRAFT_EVERY = 21  # Frames of new speech that are worth a draft: two thirds of a second.

_NOT_COMPARED = re.compile(r"[^\w']+")


class Resampler:
    """24 kHz, as connections carry it, to 16 kHz; however a stream is cut, the same samples come out."""

    def __init__(self) -> None:
        # Level up to 6 kHz, above which our recogniser hears nothing; it looks ahead two milliseconds.
        self._filter = samplerate.Resampler("sinc_fastest", channels=1)

    def feed(self, pcm: bytes) -> Samples:
        """The samples that are complete with this piece of the stream."""
        samples = np.frombuffer(pcm, "<i2").astype(np.float32)
        made = self._filter.process(samples, HEARING_RATE / SPEAKING_RATE)
        # The filter can swing past the loudest sample; wrapped around, that would be a loud click.
        clipped: Samples = np.clip(np.rint(made), -32768, 32767).astype(np.int16)
        return clipped


class Drafts:
    """Turns drafts of one turn, each of more speech than the last, into words that are not taken back.

    The newest words of a draft are often wrong, as their sound is cut short. So a word is shown when two
    drafts in a row agree on it.
    """

    def __init__(self) -> None:
        self._last: list[str] = []
        self._shown = 0

    def add(self, text: str) -> str:
        """What can be shown now, to be put behind what was shown before; empty when there is nothing new."""
        words = text.split()
        compared = [_NOT_COMPARED.sub("", word).lower() for word in words]
        same = takewhile(lambda pair: pair[0] == pair[1], zip(self._last, compared, strict=False))
        agreed = len(list(same))
        self._last = compared
        new = words[self._shown : agreed]
        begin = " " if self._shown and new else ""
        self._shown = max(self._shown, agreed)
        return begin + " ".join(new)


class SpeechInput:
    """One connection's microphone; `run` processes it.

    `began` is called when the user begins to speak, and `heard` with the words of each turn, which are empty
    when it was not understood.
    """

    def __init__(
        self,
        engines: Engines,
        voice: VoiceSettings,
        events: EventQueue,
        began: Callable[[], Awaitable[None]],
        heard: Callable[[str], Awaitable[None]],
    ) -> None:
        self._recogniser = engines.recogniser
        self._detector = engines.detector()
        self._transcribes = voice.transcribe
        self._events = events
        self._began = began
        self._heard = heard
        self._resampler = Resampler()
        self._turns = Turns(voice.silence_ms)
        self._item = 0
        self._audio: asyncio.Queue[bytes] = asyncio.Queue(MOST_CHUNKS)
        self._half_sample = b""
        self._rest: Samples = np.zeros(0, np.int16)
        self._drafts = Drafts()
        self._draft: asyncio.Task[str] | None = None
        self._draft_frames = 0
        self._ending: list[asyncio.Task[None]] = []
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether the user speaks, or what was said is still being transcribed."""
        return self._turns.speaking or bool(self._ending)

    async def add(self, pcm: bytes) -> None:
        """A piece of the stream; waits while too much is waiting already."""
        for place in range(0, len(pcm), LONGEST_CHUNK):
            if not self._closed:
                await self._audio.put(pcm[place : place + LONGEST_CHUNK])

    def forget(self) -> bool:
        """Do not tell what is being transcribed; whether there was something to forget."""
        ending, self._ending = self._ending, []
        for task in ending:
            task.cancel()
        return bool(ending)

    async def run(self) -> None:
        """Listen and transcribe, until cancelled."""
        try:
            while True:
                await self._listen()
        finally:
            self._closed = True
            self._drop_draft()
            self.forget()
            with suppress(asyncio.QueueEmpty):
                while True:  # Writers that wait for room need not wait any longer.
                    self._audio.get_nowait()

    async def _listen(self) -> None:
        try:
            async with asyncio.timeout(GONE_SECONDS if self._turns.speaking else None):
                chunk = await self._audio.get()
        except TimeoutError:
            await self._act(self._turns.end())
            return
        for frame, likelihood in await asyncio.to_thread(self._judge, chunk):
            await self._act(self._turns.feed(frame, likelihood))
        self._audio.task_done()

    def _judge(self, chunk: bytes) -> list[tuple[Samples, float]]:
        pcm = self._half_sample + chunk
        even = len(pcm) // 2 * 2
        self._half_sample = pcm[even:]
        samples = np.concatenate((self._rest, self._resampler.feed(pcm[:even])))
        whole = len(samples) // FRAME * FRAME
        self._rest = samples[whole:]
        return [(frame, self._detector(frame.tobytes())) for frame in samples[:whole].reshape(-1, FRAME)]

    async def _act(self, moment: Moment | None) -> None:
        if moment is Moment.BEGAN:
            self._item += 1
            self._drafts, self._draft_frames = Drafts(), 0
            await self._began()
        elif moment is Moment.PAUSED:
            # Should the silence last, the words are there already when it ends the turn.
            self._begin_draft()
        elif moment is Moment.ENDED:
            if self._turns.length != self._draft_frames:
                self._begin_draft()
            draft, self._draft = self._draft, None
            before = self._ending[-1:]
            self._events.put_nowait(SpeechStopped())
            self._ending.append(asyncio.create_task(self._end_turn(self._item, draft, before)))
        elif self._turns.speaking and self._transcribes and self._is_draft_due:
            self._begin_draft()

    @property
    def _is_draft_due(self) -> bool:
        # A long turn is drafted less often, as each draft costs more.
        enough = self._turns.length >= self._draft_frames * 5 // 4 + DRAFT_EVERY
        return enough and (self._draft is None or self._draft.done())

    def _begin_draft(self) -> None:
        self._drop_draft()
        self._draft_frames = self._turns.length
        if self._draft_frames:
            self._draft = asyncio.create_task(self._drafted(self._turns.speech(), self._drafts))

    def _drop_draft(self) -> None:
        if self._draft is not None:
            self._draft.cancel()
            self._draft = None

    async def _drafted(self, speech: Samples, drafts: Drafts) -> str:
        text = await self._transcribe(speech)
        if drafts is self._drafts and self._turns.speaking:
            if _is_question(text) and len(speech) == self._turns.length * FRAME:
                # Who has asked waits for the answer; who has said something may go on.
                self._turns.is_whole()
            if piece := drafts.add(text):
                await self._write(piece, self._item, final=False)
        return text

    async def _end_turn(
        self, item: int, draft: asyncio.Task[str] | None, before: list[asyncio.Task[None]]
    ) -> None:
        """Tell the words of a turn, after those of the turn before."""
        if before:
            await asyncio.wait(before)
        text = await draft if draft is not None else ""
        if text:
            await self._write(text, item, final=True)
        self._ending.pop(0)
        await self._heard(text)

    async def _write(self, text: str, item: int, *, final: bool) -> None:
        if self._transcribes:
            await self._events.put(Transcript("user", text, final=final, item=f"user-{item}"))

    async def _transcribe(self, speech: Samples) -> str:
        try:
            return await asyncio.to_thread(self._recogniser.write_down, speech)
        except Exception:  # noqa: BLE001 - an engine may fail in its own way; the line stays open
            _log.exception("speech could not be transcribed")
            return ""


def _is_question(text: str) -> bool:
    return text.rstrip().endswith("?") and len(text.split()) > 2
