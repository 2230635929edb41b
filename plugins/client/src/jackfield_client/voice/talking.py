"""A voice session that speaks from files: turn by turn, with the words of both sides on the screen."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

from jackfield_client import messages
from jackfield_client.errors import ClientError
from jackfield_client.messages import Message
from jackfield_client.session import Session
from jackfield_client.terminal.decisions import Decisions
from jackfield_client.terminal.screen import Screen
from jackfield_client.terminal.showing import Showing
from jackfield_client.terminal.turn import IDLE
from jackfield_client.voice import BYTES_PER_MS, FRAME_MS
from jackfield_client.voice.captions import Captions
from jackfield_client.voice.loudspeaker import Loudspeaker
from jackfield_client.voice.recording import Recording
from jackfield_client.voice.wav import Sound

SILENCE = bytes(FRAME_MS * BYTES_PER_MS)

LOOK_SECONDS = 0.05
"""How often it is looked whether an answer is complete."""

PAUSE_SECONDS = 1.0
"""So much silence follows a file before an answer to an earlier part of it is taken for the answer."""


class Talking:
    """Sends sound as a microphone does, listens, and knows when an answer is complete."""

    def __init__(
        self, session: Session, recording: Recording, *, approve: bool, fast: bool, wait: float
    ) -> None:
        self._session = session
        self._fast = fast
        self._wait = wait
        # In a pipe lines of both kinds may come together, and one must not begin within the other.
        self._screen = Screen(prompting=False, whole_lines=not sys.stdout.isatty())
        self._showing = Showing(self._screen, history=False)
        self._captions = Captions(self._screen)
        self._decisions = Decisions(session, self._screen, None, approve=approve)
        self._loudspeaker = Loudspeaker(self._heard, recording, at_once=fast)
        self._complete = False
        self._news = time.monotonic()

    async def run(self, sounds: Iterable[Sound]) -> bool:
        """Speak every sound and hear the answer to it; whether all were answered."""
        following = asyncio.create_task(self._follow())
        playing = asyncio.create_task(self._loudspeaker.run())
        fine = True
        try:
            for sound in sounds:
                fine = await self._take_turn(sound, following) and fine
        finally:
            for task in (playing, following):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            self._screen.finish()
        return fine

    async def _take_turn(self, sound: Sound, following: asyncio.Task[None]) -> bool:
        self._complete = False
        spoken = asyncio.Event()
        speaking = asyncio.create_task(self._speak(sound, spoken))
        try:
            while not (speaking.done() or following.done()):
                await asyncio.sleep(LOOK_SECONDS)
                if spoken.is_set() and self._answered and not await self._decisions.next(self._expect):
                    return True
                if time.monotonic() - self._news > self._wait:
                    self._screen.notice(f"{sound.path.name}: nothing was answered for {self._wait:g} s.")
                    return False
        finally:
            speaking.cancel()
            with suppress(asyncio.CancelledError):
                await speaking
        return self._answered

    @property
    def _answered(self) -> bool:
        return self._complete and self._loudspeaker.silent.is_set()

    def _expect(self) -> None:
        self._complete = False
        self._news = time.monotonic()

    async def _speak(self, sound: Sound, spoken: asyncio.Event) -> None:
        """The sound in real time, or as fast as it is taken; then silence, as from an open microphone."""
        due = time.monotonic()
        for frame in sound.frames():
            due = await self._say(frame, due, paced=not self._fast)
            self._news = time.monotonic()
        for _ in range(round(PAUSE_SECONDS * 1000 / FRAME_MS)):
            due = await self._say(SILENCE, due, paced=not self._fast)
        spoken.set()
        while True:
            due = await self._say(SILENCE, due, paced=True)

    async def _say(self, frame: bytes, due: float, *, paced: bool) -> float:
        await self._session.send_audio(frame)
        now = time.monotonic()
        # What could not be sent in time is not made up for by a burst.
        due = max(due, now - 1.0) + FRAME_MS / 1000
        await asyncio.sleep(max(0.0, due - now) if paced else 0.0)
        return due if paced else now

    async def _follow(self) -> None:
        async for message in self._session:
            self._news = time.monotonic()
            if isinstance(message, messages.Audio):
                await self._loudspeaker.add(message.item, message.pcm)
                continue

            self._captions.show(message)
            self._showing.show(message)
            self._decisions.see(message)
            self._mind(message)

    def _mind(self, message: Message) -> None:
        """Know whether an answer is owed, and stop playing what is over."""
        match message:
            case messages.SpeechStarted() | messages.Interrupted():
                self._loudspeaker.hush()
                self._complete = False
            case messages.SpeechStopped() | messages.ToolStart():
                self._complete = False
            case messages.TurnComplete():
                self._complete = True
            case messages.Resumed() if message.state in IDLE:
                self._complete = True

    async def _heard(self, item: str, ms: int) -> None:
        # A session that is over has nobody to be told.
        with suppress(ClientError):
            await self._session.heard(item, ms)
