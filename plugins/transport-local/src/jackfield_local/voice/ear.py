"""What comes from the microphone: noticed, drafted while it lasts, and written down when it ends."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

import numpy as np

from jackfield_local.voice.drafts import Drafts
from jackfield_local.voice.engines import FRAME, HEARING_RATE, SPEAKING_RATE, Engines, Samples
from jackfield_local.voice.resampling import Resampler
from jackfield_local.voice.turns import Began, Ended, Moment, Paused, Turns
from jackfield_local.voice.workers import at_leisure, listening, working

_log = logging.getLogger(__name__)

WAITING = 10 * SPEAKING_RATE * 2
"""Bytes that may wait to be listened to, ten seconds; then whoever brings them has to wait."""

AT_ONCE = SPEAKING_RATE
"""Bytes that are listened to at once, half a second, so that other connections get their turn."""

GONE_SECONDS = 1.0
"""A microphone that gives nothing for so long in the middle of speech was closed, or muted."""

DRAFT_EVERY = HEARING_RATE * 2 // 3
"""Samples of new speech that are worth a draft; a long turn is drafted less often, as each costs more."""


def is_question(text: str) -> bool:
    """Whether the recogniser took this for a whole question."""
    return text.rstrip().endswith("?") and len(text.split()) > 2


class Listener(Protocol):
    """Who is told what the ear hears."""

    async def speech_began(self) -> None:
        """The user speaks."""

    async def speech_ended(self) -> None:
        """The user's turn is over; its words follow."""

    async def drafted(self, piece: str) -> None:
        """Words of the turn that is under way."""

    async def heard(self, text: str | None) -> None:
        """The words of a turn; empty when it was not understood, None when it was to be forgotten."""


class Ear:
    """One connection's microphone; `run` is its life."""

    def __init__(self, engines: Engines, silence_ms: int, listener: Listener, *, drafting: bool) -> None:
        self._recogniser = engines.recogniser
        self._detector = engines.detector()
        self._listener = listener
        self._drafting = drafting
        self._resampler = Resampler()
        self._turns = Turns(silence_ms)
        self._waiting = bytearray()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._rest: Samples = np.zeros(0, np.int16)
        self._drafts = Drafts()
        self._draft: asyncio.Task[str] | None = None
        self._draft_length = 0
        self._ended: asyncio.Queue[tuple[Samples | None, asyncio.Task[str] | None]] = asyncio.Queue(4)
        self._unwritten = 0
        self._forgotten = 0
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether the user speaks, or what was said is still being written down."""
        return self._turns.speaking or self._unwritten > 0

    async def take(self, pcm: bytes) -> None:
        """A piece of the stream; waits while too much is waiting already."""
        for place in range(0, len(pcm), AT_ONCE):
            while len(self._waiting) >= WAITING and not self._closed:
                self._room.clear()
                await self._room.wait()
            if self._closed:
                return
            self._waiting += pcm[place : place + AT_ONCE]
            self._changed.set()

    def forget(self) -> bool:
        """Do not tell what is being written down; whether there was something more to forget."""
        new = self._unwritten > self._forgotten
        self._forgotten = self._unwritten
        return new

    async def run(self) -> None:
        """Listen and write down, until cancelled."""
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._listen())
                both.create_task(self._write())
        finally:
            self._closed = True
            self._room.set()
            self._drop_draft()

    async def _listen(self) -> None:
        while True:
            if not await self._something():
                await self._act(self._turns.end())
                continue
            size = min(len(self._waiting), AT_ONCE) // 2 * 2
            pcm = bytes(self._waiting[:size])
            del self._waiting[:size]
            self._room.set()
            for frame, likelihood in await listening(self._judge, pcm):
                moment = self._turns.feed(frame, likelihood)
                if moment is not None:
                    await self._act(moment)
                elif self._turns.speaking:
                    self._draft_now_and_then()

    async def _something(self) -> bool:
        """Wait for sound; whether it came, or else the microphone is gone in the middle of speech."""
        while len(self._waiting) < 2:
            self._changed.clear()
            try:
                async with asyncio.timeout(GONE_SECONDS if self._turns.speaking else None):
                    await self._changed.wait()
            except TimeoutError:
                return False
        return True

    def _judge(self, pcm: bytes) -> list[tuple[Samples, float]]:
        samples = np.concatenate((self._rest, self._resampler.feed(pcm)))
        whole = len(samples) // FRAME * FRAME
        self._rest = samples[whole:]
        frames = samples[:whole].reshape(-1, FRAME)
        return [(frame, self._detector.likelihood(frame)) for frame in frames]

    async def _act(self, moment: Moment) -> None:
        match moment:
            case Began():
                self._drafts, self._draft_length = Drafts(), 0
                await self._listener.speech_began()
            case Paused(speech):
                # Should the silence last, the words are there already when it ends the turn.
                self._drop_draft()
                self._begin_draft(speech)
            case Ended(speech):
                ready = self._draft if speech is not None and len(speech) == self._draft_length else None
                if ready is None:
                    self._drop_draft()
                self._draft = None
                self._unwritten += 1
                await self._listener.speech_ended()
                await self._ended.put((speech, ready))

    def _draft_now_and_then(self) -> None:
        if not self._drafting or (self._draft is not None and not self._draft.done()):
            return
        if self._turns.length * FRAME >= self._draft_length * 5 // 4 + DRAFT_EVERY and at_leisure():
            self._begin_draft(self._turns.speech())

    def _begin_draft(self, speech: Samples) -> None:
        self._draft_length = len(speech)
        self._draft = asyncio.create_task(self._drafted(speech, self._drafts))

    def _drop_draft(self) -> None:
        if self._draft is not None:
            self._draft.cancel()
            self._draft = None

    async def _drafted(self, speech: Samples, drafts: Drafts) -> str:
        text = await self._written(speech)
        if is_question(text) and len(speech) == self._turns.length * FRAME and drafts is self._drafts:
            # Who has asked waits for the answer; who has said something may go on.
            self._turns.is_whole()
        piece = drafts.add(text)
        if piece and self._drafting and self._turns.speaking and drafts is self._drafts:
            await self._listener.drafted(piece)
        return text

    async def _write(self) -> None:
        while True:
            speech, ready = await self._ended.get()
            text = ""
            if ready is not None:
                text = await ready
            elif speech is not None:
                text = await self._written(speech)
            self._unwritten -= 1
            forgotten = self._forgotten > 0
            self._forgotten -= forgotten
            await self._listener.heard(None if forgotten else text)

    async def _written(self, speech: Samples) -> str:
        try:
            return await working(self._recogniser.write_down, speech)
        except Exception:  # noqa: BLE001 - an engine may fail in its own way; the line stays open
            _log.exception("speech could not be written down")
            return ""
