"""Speech input: detects the user's turns and transcribes them."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import Enum, auto

import numpy as np
import soxr  # type: ignore[import-untyped]
from jackfield.transport.events import SpeechStopped, Transcript
from jackfield.transport.protocol import VoiceSettings
from jackfield.transport.queue import EventQueue

from jackfield_local.voice.engines import (
    FRAME,
    FRAME_MS,
    HEARING_RATE,
    SPEAKING_RATE,
    Samples,
    SpeechEngines,
)

_log = logging.getLogger(__name__)

LONGEST_CHUNK = SPEAKING_RATE  # Bytes classified at once, half a second: other sessions are not delayed.
MOST_CHUNKS = 100  # Two seconds, as a browser sends them; then the sender waits.
GONE_SECONDS = 1.0  # Without audio for this long during speech, the microphone counts as closed.
TAIL = bytes(2 * SPEAKING_RATE * 2 * FRAME_MS // 1000)  # Two frames of silence.

SURE = 0.5  # Speech begins with frames of at least this probability,
STILL = 0.35  # and continues with these.
ONSET = 3  # Speech begins with so many likely frames among one more; a click or a breath has fewer.
LEAST = 5  # Fewer likely frames than this are not speech.
BEFORE = 10  # Frames kept from before the start, because first consonants are often missed.
AFTER = 5  # Frames of silence that count as a pause, and are kept at the end of speech.
LONGEST_MS = 60_000  # The longest turn; limits memory use.
SOONEST = 7  # A complete turn ends after two fifths of the usual silence, and at least this many frames.
SILENCES_MS = (200, 5000)  # Limits of the silence that ends a turn, regardless of the settings.


class TurnEvent(Enum):
    """A change in the user's turn."""

    BEGAN = auto()
    PAUSED = auto()
    """A short silence; if it lasts, it is not added to the turn's speech."""
    ENDED = auto()


class TurnDetector:
    """Detects the user's turns in one stream, frame by frame."""

    def __init__(self, silence_ms: int) -> None:
        least, most = SILENCES_MS
        self._patience = max(AFTER, -(-min(max(silence_ms, least), most) // FRAME_MS))
        self._before: deque[tuple[Samples, bool]] = deque(maxlen=BEFORE + ONSET)
        self._frames: list[Samples] = []
        self._likely = 0
        self._silent = 0
        self._complete = False
        self.speaking = False
        """True if the user's turn is in progress."""

    def feed(self, frame: Samples, likelihood: float) -> TurnEvent | None:
        """Process the next frame of the stream; return the change that it causes."""
        if not self.speaking:
            return self._listen(frame, likelihood)
        self._frames.append(frame)
        self._silent += 1
        if likelihood >= STILL:
            self._likely += 1
            self._silent, self._complete = 0, False
        enough = max(SOONEST, self._patience * 2 // 5) if self._complete else self._patience
        if self._silent >= min(enough, self._patience) or len(self._frames) * FRAME_MS >= LONGEST_MS:
            return self.end()
        return TurnEvent.PAUSED if self._silent == AFTER and self._likely >= LEAST else None

    def mark_complete(self) -> None:
        """Record that the words before this pause are complete: less silence then ends the turn."""
        self._complete = self._silent > 0

    def end(self) -> TurnEvent:
        """End the turn now, for example because the microphone was closed."""
        self.speaking = False
        self._before.clear()
        return TurnEvent.ENDED

    @property
    def length(self) -> int:
        """Frames of speech in the turn, without the silence after them; 0 if it was only noise."""
        return len(self._frames) - max(0, self._silent - AFTER) if self._likely >= LEAST else 0

    def speech(self) -> Samples:
        """Return the speech of the turn so far, or of the turn that ended last."""
        return np.concatenate(self._frames[: self.length])

    def _listen(self, frame: Samples, likelihood: float) -> TurnEvent | None:
        self._before.append((frame, likelihood >= SURE))
        recent = list(self._before)[-ONSET - 1 :]
        if sum(likely for _, likely in recent) < ONSET:
            return None
        self._frames = [each for each, _ in self._before]
        self._likely, self._silent, self._complete = ONSET, 0, False
        self.speaking = True
        return TurnEvent.BEGAN


class Resampler:
    """Converts 24 kHz to 16 kHz; the result does not depend on how the stream is split."""

    def __init__(self) -> None:
        # The engine for variable rates holds back a constant ten milliseconds; the other one up to forty.
        self._filter = soxr.ResampleStream(
            SPEAKING_RATE, HEARING_RATE, 1, dtype="float32", quality="HQ", vr=True
        )

    def feed(self, pcm: bytes) -> Samples:
        """Return the samples that are complete with this piece of the stream."""
        made = self._filter.resample_chunk(np.frombuffer(pcm, "<i2").astype(np.float32))
        # The filter can overshoot the loudest sample; an integer overflow would be a loud click.
        clipped: Samples = np.clip(np.rint(made), -32768, 32767).astype(np.int16)
        return clipped


class SpeechInput:
    """The audio input of one connection; `run` processes it.

    `began` is called when the user begins to speak, and `heard` with the words of each turn, which are empty
    if none were recognised.
    """

    def __init__(
        self,
        engines: SpeechEngines,
        voice: VoiceSettings,
        events: EventQueue,
        began: Callable[[], Awaitable[None]],
        heard: Callable[[str], Awaitable[None]],
    ) -> None:
        self._engine = engines.transcribe
        self._detector = engines.detector()
        self._transcribes = voice.transcribe
        self._events = events
        self._began = began
        self._heard = heard
        self._resampler = Resampler()
        self._turns = TurnDetector(voice.silence_ms)
        self._item = 0
        self._audio: asyncio.Queue[bytes] = asyncio.Queue(MOST_CHUNKS)
        self._rest: Samples = np.zeros(0, np.int16)
        self._draft: asyncio.Task[str] | None = None
        self._draft_frames = 0
        self._ending: list[asyncio.Task[None]] = []
        self._closed = False

    @property
    def busy(self) -> bool:
        """True if the user is speaking, or a turn is still being transcribed."""
        return self._turns.speaking or bool(self._ending)

    async def add(self, pcm: bytes) -> None:
        """Add a piece of the stream; wait while the queue is full."""
        for place in range(0, len(pcm), LONGEST_CHUNK):
            if not self._closed:
                await self._audio.put(pcm[place : place + LONGEST_CHUNK])

    def discard(self) -> bool:
        """Discard the turns that are being transcribed; return whether there were any."""
        ending, self._ending = self._ending, []
        for task in ending:
            task.cancel()
        return bool(ending)

    async def run(self) -> None:
        """Detect and transcribe turns until cancelled."""
        try:
            while True:
                await self._listen()
        finally:
            self._closed = True
            self._drop_draft()
            self.discard()
            with suppress(asyncio.QueueEmpty):
                while True:  # Release senders that wait for room.
                    self._audio.get_nowait()

    async def _listen(self) -> None:
        try:
            async with asyncio.timeout(GONE_SECONDS if self._turns.speaking else None):
                chunk = await self._audio.get()
        except TimeoutError:
            # The silence pushes the samples that the resampler and the last frame hold back into the turn.
            await self._hear(TAIL)
            if self._turns.speaking:
                await self._act(self._turns.end())
            return
        await self._hear(chunk)
        self._audio.task_done()

    async def _hear(self, chunk: bytes) -> None:
        for frame, likelihood in await asyncio.to_thread(self._classify, chunk):
            await self._act(self._turns.feed(frame, likelihood))

    def _classify(self, chunk: bytes) -> list[tuple[Samples, float]]:
        samples = np.concatenate((self._rest, self._resampler.feed(chunk)))
        whole = len(samples) // FRAME * FRAME
        self._rest = samples[whole:]
        return [(frame, self._detector(frame.tobytes())) for frame in samples[:whole].reshape(-1, FRAME)]

    async def _act(self, moment: TurnEvent | None) -> None:
        if moment is TurnEvent.BEGAN:
            self._item += 1
            self._draft_frames = 0
            await self._began()
        elif moment is TurnEvent.PAUSED:
            # If the silence lasts, the words are already known when the turn ends.
            self._begin_draft()
        elif moment is TurnEvent.ENDED:
            if self._turns.length != self._draft_frames:
                self._begin_draft()
            draft, self._draft = self._draft, None
            before = self._ending[-1:]
            self._events.put_nowait(SpeechStopped())
            self._ending.append(asyncio.create_task(self._end_turn(self._item, draft, before)))

    def _begin_draft(self) -> None:
        self._drop_draft()
        self._draft_frames = self._turns.length
        if self._draft_frames:
            self._draft = asyncio.create_task(self._drafted(self._turns.speech(), self._item))

    def _drop_draft(self) -> None:
        if self._draft is not None:
            self._draft.cancel()
            self._draft = None

    async def _drafted(self, speech: Samples, item: int) -> str:
        text = await self._transcribe(speech)
        unchanged = item == self._item and len(speech) == self._turns.length * FRAME
        is_question = text.rstrip().endswith("?") and len(text.split()) > 2
        if self._turns.speaking and unchanged and is_question:
            # After a question the user waits for the answer; after a statement there may be more.
            self._turns.mark_complete()
        return text

    async def _end_turn(
        self, item: int, draft: asyncio.Task[str] | None, before: list[asyncio.Task[None]]
    ) -> None:
        """Report the words of a turn, after those of the turn before."""
        if before:
            await asyncio.wait(before)
        text = await draft if draft is not None else ""
        if text and self._transcribes:
            await self._events.put(Transcript("user", text, final=True, item=f"user-{item}"))
        self._ending.pop(0)
        await self._heard(text)

    async def _transcribe(self, speech: Samples) -> str:
        try:
            return await asyncio.to_thread(self._engine, speech)
        except Exception:  # noqa: BLE001 - an engine may fail in any way; the connection stays open
            _log.exception("speech could not be transcribed")
            return ""
