"""A voice session that sends audio files, one turn each, and prints the transcript of both sides."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

from jackfield_client import messages
from jackfield_client.errors import ClientError
from jackfield_client.messages import ChatMessage, Interrupted, Message, SessionStatus, Transcript
from jackfield_client.session import ClientSession
from jackfield_client.terminal.chat import IDLE_STATES
from jackfield_client.terminal.input import ConfirmationPrompt
from jackfield_client.terminal.screen import MessagePrinter, Screen
from jackfield_client.voice import BYTES_PER_MS, FRAME_MS
from jackfield_client.voice.playback import PlaybackSimulator
from jackfield_client.voice.wav import AudioFile, WavRecorder

SILENCE = bytes(FRAME_MS * BYTES_PER_MS)

POLL_SECONDS = 0.05
"""How often the client checks whether the answer is complete."""

PAUSE_SECONDS = 1.0
"""How much silence follows a file before an answer counts as the answer to all of it."""

_LABELS = {"user": "you", "assistant": "assistant"}


class VoiceChat:
    """Sends audio as a microphone does, and waits until each answer is complete."""

    def __init__(
        self, session: ClientSession, recorder: WavRecorder, *, approve: bool, fast: bool, wait: float
    ) -> None:
        self._session = session
        self._fast = fast
        self._wait = wait
        # Both outputs may go into one pipe, where a line of one must not start within a line of the other.
        self._screen = Screen(prompting=False, whole_lines=not sys.stdout.isatty())
        self._printer = MessagePrinter(self._screen, history=False)
        self._transcript = TranscriptPrinter(self._screen)
        self._confirmations = ConfirmationPrompt(session, self._screen, None, approve=approve)
        self._playback = PlaybackSimulator(self._report_playback, recorder, immediate=fast)
        self._turn_complete = False
        self._last_activity = time.monotonic()

    async def run(self, files: Iterable[AudioFile]) -> bool:
        """Send every file and wait for its answer; return whether all were answered."""
        receiver = asyncio.create_task(self._receive())
        player = asyncio.create_task(self._playback.run())
        all_answered = True
        try:
            for file in files:
                all_answered = await self._take_turn(file, receiver) and all_answered
        finally:
            for task in (player, receiver):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            self._screen.finish()
        return all_answered

    async def _take_turn(self, file: AudioFile, receiver: asyncio.Task[None]) -> bool:
        self._turn_complete = False
        file_sent = asyncio.Event()
        sender = asyncio.create_task(self._send(file, file_sent))
        try:
            while not (sender.done() or receiver.done()):
                await asyncio.sleep(POLL_SECONDS)
                answered = file_sent.is_set() and self._answered
                if answered and not await self._confirmations.ask_next(self._expect_answer):
                    return True
                if time.monotonic() - self._last_activity > self._wait:
                    self._screen.notice(
                        f"{file.path.name}: no answer for {self._wait:g} s. "
                        "Use a longer --wait, or see the host's log."
                    )
                    return False
        finally:
            sender.cancel()
            with suppress(asyncio.CancelledError):
                await sender
        return self._answered

    @property
    def _answered(self) -> bool:
        return self._turn_complete and self._playback.finished.is_set()

    def _expect_answer(self) -> None:
        self._turn_complete = False
        self._last_activity = time.monotonic()

    async def _send(self, file: AudioFile, file_sent: asyncio.Event) -> None:
        """Send the file in real time or as fast as possible, then silence, like an open microphone."""
        due = time.monotonic()
        for frame in file.frames():
            due = await self._send_frame(frame, due, paced=not self._fast)
            self._last_activity = time.monotonic()
        for _ in range(round(PAUSE_SECONDS * 1000 / FRAME_MS)):
            due = await self._send_frame(SILENCE, due, paced=not self._fast)
        file_sent.set()
        while True:
            due = await self._send_frame(SILENCE, due, paced=True)

    async def _send_frame(self, frame: bytes, due: float, *, paced: bool) -> float:
        await self._session.send_audio(frame)
        now = time.monotonic()
        # A delay of more than a second is not followed by a burst.
        due = max(due, now - 1.0) + FRAME_MS / 1000
        await asyncio.sleep(max(0.0, due - now) if paced else 0.0)
        return due if paced else now

    async def _receive(self) -> None:
        async for message in self._session:
            self._last_activity = time.monotonic()
            if isinstance(message, messages.AudioChunk):
                await self._playback.add(message.item, message.pcm)
                continue

            self._transcript.print(message)
            self._printer.print(message)
            self._confirmations.observe(message)
            self._track_turn(message)

    def _track_turn(self, message: Message) -> None:
        """Track whether the turn is complete, and stop playback when the answer is interrupted."""
        match message:
            case messages.SpeechStarted() | messages.Interrupted():
                self._playback.clear()
                self._turn_complete = False
            case messages.SpeechStopped() | messages.ToolStart():
                self._turn_complete = False
            case messages.TurnComplete():
                self._turn_complete = True
            case messages.Resumed() if message.state in IDLE_STATES:
                self._turn_complete = True

    async def _report_playback(self, item: str, ms: int) -> None:
        # A closed session accepts no reports.
        with suppress(ClientError):
            await self._session.report_playback(item, ms)


class TranscriptPrinter:
    """Prints one line for every utterance while it is spoken, and the session's states."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._speaker = ""
        self._printed = {"user": "", "assistant": ""}
        self._complete = {"user": "", "assistant": ""}
        self._state = ""

    def print(self, message: Message) -> None:
        """Print a message that belongs to the transcript."""
        if isinstance(message, Transcript) and message.speaker in _LABELS:
            (self._end if message.final else self._append)(message.speaker, message.text)
        elif isinstance(message, ChatMessage) and message.speaker in _LABELS:
            # The words of an interrupted answer have been printed already.
            if not message.interrupted:
                self._end(message.speaker, message.text)
        elif isinstance(message, Interrupted):
            self._screen.finish()
            self._screen.line("(interrupted)")
            self._printed["assistant"] = self._speaker = ""
        elif isinstance(message, SessionStatus) and message.state != self._state:
            self._state = message.state
            self._screen.line(f"[{message.state}]")

    def _append(self, speaker: str, text: str) -> None:
        if not self._printed[speaker]:
            self._complete[speaker] = ""
        if speaker != self._speaker:
            self._screen.finish()
            self._screen.write(f"{_LABELS[speaker]}: ")
            self._speaker = speaker
        self._printed[speaker] += text
        self._screen.write(text)

    def _end(self, speaker: str, text: str) -> None:
        """Print the rest of an utterance; it arrives as transcript and as message, in either order."""
        text = text.strip()
        if text and self._complete[speaker] == text:
            self._complete[speaker] = ""
            return
        printed, self._printed[speaker] = self._printed[speaker], ""
        rest = text.removeprefix(printed.strip()) if printed else text
        if printed.strip() and not text.startswith(printed.strip()):
            self._speaker = ""
        if rest:
            self._append(speaker, rest)
        self._printed[speaker] = self._speaker = ""
        self._complete[speaker] = text
        self._screen.finish()
