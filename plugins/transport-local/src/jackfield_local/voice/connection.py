"""A conversation by voice: what the user says goes to a dialogue, and its answers are said aloud."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator

from jackfield.transport.events import Closed, Interrupted, ProviderError, SpeechStarted, ToolCalls
from jackfield.transport.protocol import ConnectionConfig, VoiceSettings

from jackfield_local.connection import LONGEST_TEXT, LocalConnection
from jackfield_local.mind import Dialogue, Thought
from jackfield_local.models import speech
from jackfield_local.voice.engines import Engines
from jackfield_local.voice.input import SpeechInput
from jackfield_local.voice.output import FILLER_SECONDS, SpeechOutput

_log = logging.getLogger(__name__)


class VoiceConnection(LocalConnection):
    """Adds speech input and output; what the user says overtakes whatever else was to be said."""

    def __init__(
        self, dialogue: Dialogue, engines: Engines, voice: VoiceSettings, *, dead_air: float = FILLER_SECONDS
    ) -> None:
        super().__init__(dialogue)
        self._dead_air = dead_air
        self._words: list[str] = []
        self._output = SpeechOutput(engines.synthesiser, self._events, transcribe=voice.transcribe)
        self._input = SpeechInput(engines, voice, self._events, self._speech_began, self._transcribed)
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def open(cls, dialogue: Dialogue, opening: ConnectionConfig) -> VoiceConnection:
        """Load what is not loaded yet, and listen; `TransportError` when there is no voice to be had here."""
        language = opening.voice.language or "en"
        if language.split("-")[0].lower() != "en":
            _log.warning("the local voice hears and speaks English only, not %s", language)
        engines = await asyncio.to_thread(speech.engines, opening.voice.voice)
        return cls(dialogue, engines, opening.voice)

    async def send_text(self, text: str) -> None:
        """A message of the user; whatever is being said is over."""
        if await self._cut():
            self._events.put_nowait(Interrupted())
        self._ask_words(text[:LONGEST_TEXT])

    async def send_audio(self, pcm: bytes) -> None:
        """What the user says: PCM16, 24 kHz, mono."""
        await self._input.add(pcm)

    async def speak(self, text: str) -> None:
        """Say a filler, unless the user has heard one in this turn or one side speaks."""
        if self._answering is None and self._has_turn and not self._events.closed:
            await self._output.stop_filler()
            self._output.start_filler(text)

    async def interrupt(self) -> None:
        """Stop what is being said, and do not answer what is still being transcribed."""
        if self._answering is not None:
            self._waiting.clear()
            self._words.clear()
        forgotten = self._input.forget()
        if await self._cut() or forgotten:
            self._events.put_nowait(Interrupted())
        self._next()

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Tell the dialogue which words were heard of what it said last, when it was not all of them."""
        spoken = self._output.spoken
        if item != spoken.item or self._events.closed:
            return
        if await self._cut():
            self._events.put_nowait(Interrupted())
        # A message that ends in calls is not over; what was said before them is not what matters of it.
        waits = self._calls or self._results
        if not waits and (self._unfinished or not spoken.whole(heard_ms)):
            self._unfinished = False
            self._dialogue.interrupted(spoken.heard(heard_ms))
            spoken.item = ""

    async def close(self) -> None:
        """Hang up."""
        await super().close()
        await self._output.stop_filler()
        self._listening.cancel()
        await asyncio.wait((self._listening,))

    # What the user says.

    @property
    def _has_turn(self) -> bool:
        return not self._input.busy

    @property
    def _overtaken(self) -> bool:
        return bool(self._words)

    def _ask_words(self, text: str) -> None:
        self._output.awaited = True
        self._words.append(text)
        # The dialogue takes in results and context with them, without an answer of their own.
        self._waiting = deque((self._answer_words,))
        self._next()

    def _answer_words(self) -> AsyncIterator[Thought]:
        words = " ".join(self._words)
        self._words.clear()
        return self._dialogue.answer(words)

    async def _speech_began(self) -> None:
        """The user speaks: whatever is being said stops at once."""
        cut = await self._cut()
        await self._events.put(SpeechStarted())
        if cut:
            self._events.put_nowait(Interrupted())

    async def _transcribed(self, text: str) -> None:
        """The words of a turn; a noise that was taken for one leaves things as they were."""
        if text:
            self._ask_words(text)
        elif not self._waiting:
            if self._results:
                self._waiting.append(self._go_on)
            elif not self._calls:
                await self._events.put(ProviderError("no_audio", "no words were found in what was said"))
        self._next()

    async def _listen(self) -> None:
        try:
            await self._input.run()
        except Exception:  # noqa: BLE001 - whatever ends the listening ends the connection
            _log.exception("the local speech input failed")
            self._events.close(Closed("server_error", "the local speech input failed; the log says more"))

    # What the dialogue says.

    async def _begin_turn(self) -> None:
        self._output.start_filler(after=self._dead_air)
        await super()._begin_turn()
        self._output.begin_turn()

    async def _deliver(self, thoughts: AsyncIterator[Thought]) -> ToolCalls | None:
        self._output.start_filler(after=self._dead_air)
        return await self._output.say(thoughts)

    def _heard(self) -> str:
        return self._output.spoken.heard()

    async def _cut(self) -> bool:
        cancelled = await self._cancel_answer()
        await self._output.stop_filler()
        unheard = self._output.withdraw()
        self._unfinished = self._unfinished or unheard > 0
        return cancelled or unheard > 0
