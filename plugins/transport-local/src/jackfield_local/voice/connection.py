"""The voice connection: speech goes to a dialogue as text, and its answers come back as speech."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator

from jackfield.transport.events import Closed, Interrupted, ProviderError, SpeechStarted, ToolCalls
from jackfield.transport.protocol import ConnectionConfig, VoiceSettings

from jackfield_local.connection import LONGEST_TEXT, AnswerPart, Dialogue, LocalConnection
from jackfield_local.voice.engines import VOICE, SpeechEngines, load_engines
from jackfield_local.voice.speech_input import SpeechInput
from jackfield_local.voice.speech_output import FILLER_SECONDS, SpeechOutput

_log = logging.getLogger(__name__)


class VoiceConnection(LocalConnection):
    """Adds speech input and output; what the user says takes precedence over any other answer."""

    def __init__(
        self,
        dialogue: Dialogue,
        engines: SpeechEngines,
        voice: VoiceSettings,
        *,
        filler_seconds: float = FILLER_SECONDS,
    ) -> None:
        super().__init__(dialogue)
        self._filler_seconds = filler_seconds
        self._words: list[str] = []
        self._output = SpeechOutput(engines.synthesise, self._events, transcribe=voice.transcribe)
        self._input = SpeechInput(engines, voice, self._events, self._speech_began, self._transcribed)
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def open(cls, dialogue: Dialogue, opening: ConnectionConfig) -> VoiceConnection:
        """Load the engines if necessary, and listen; raises `TransportError` if voice is not available."""
        language = opening.voice.language or "en"
        if language.split("-")[0].lower() != "en":
            _log.warning("the local voice supports only English, not %s", language)
        if opening.voice.voice not in (None, "", VOICE):
            _log.warning("there is no local voice %s; %s is used instead", opening.voice.voice, VOICE)
        return cls(dialogue, await asyncio.to_thread(load_engines), opening.voice)

    async def send_text(self, text: str) -> None:
        """Answer a message from the user, which interrupts the agent's speech."""
        if await self._cut():
            self._events.put_nowait(Interrupted())
        self._ask_words(text[:LONGEST_TEXT])

    async def send_audio(self, pcm: bytes) -> None:
        """Process the user's speech: PCM16, 24 kHz, mono."""
        await self._input.add(pcm)

    async def speak(self, text: str) -> None:
        """Say a filler, unless the user has heard one in this turn or either side is speaking."""
        if self._answering is None and self._has_turn and not self._events.closed:
            await self._output.stop_filler()
            self._output.start_filler(text)

    async def interrupt(self) -> None:
        """Stop the agent's speech, and discard the user's speech that is still being transcribed."""
        if self._answering is not None:
            self._waiting.clear()
            self._words.clear()
        discarded = self._input.discard()
        if await self._cut() or discarded:
            self._events.put_nowait(Interrupted())
        self._next()

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Tell the dialogue that its last answer was not played to the end."""
        if item != self._output.item or self._events.closed:
            return
        if await self._cut():
            self._events.put_nowait(Interrupted())
        # An answer that ends in calls is not over yet.
        waits = self._calls or self._results
        if not waits and (self._unfinished or not self._output.is_complete(heard_ms)):
            self._unfinished = False
            self._dialogue.interrupted(heard=self._output.is_heard(heard_ms))
            self._output.item = ""

    async def close(self) -> None:
        """Close the connection."""
        await super().close()
        await self._output.stop_filler()
        self._listening.cancel()
        await asyncio.wait((self._listening,))

    # The user's speech.

    @property
    def _has_turn(self) -> bool:
        return not self._input.busy

    @property
    def _overtaken(self) -> bool:
        return bool(self._words)

    def _ask_words(self, text: str) -> None:
        self._output.awaited = True
        self._words.append(text)
        # The dialogue also gets results and context, but does not answer them separately.
        self._waiting = deque((self._answer_words,))
        self._next()

    def _answer_words(self) -> AsyncIterator[AnswerPart]:
        words = " ".join(self._words)
        self._words.clear()
        return self._dialogue.answer(words)

    async def _speech_began(self) -> None:
        """Stop the agent's speech, because the user has begun to speak."""
        cut = await self._cut()
        await self._events.put(SpeechStarted())
        if cut:
            self._events.put_nowait(Interrupted())

    async def _transcribed(self, text: str) -> None:
        """Process the words of a turn; noise has no words and changes nothing."""
        if text:
            self._ask_words(text)
        elif not self._waiting:
            if self._results:
                self._waiting.append(self._continue)
            elif not self._calls:
                await self._events.put(ProviderError("no_audio", "no words were recognised"))
        self._next()

    async def _listen(self) -> None:
        try:
            await self._input.run()
        except Exception:  # noqa: BLE001 - without input the connection cannot continue
            _log.exception("the local speech input failed")
            self._events.close(Closed("server_error", "the local speech input failed; see the log"))

    # The dialogue's answers.

    async def _begin_turn(self) -> None:
        self._output.start_filler(after=self._filler_seconds)
        await super()._begin_turn()
        self._output.begin_turn()

    async def _deliver(self, answer: AsyncIterator[AnswerPart]) -> ToolCalls | None:
        self._output.start_filler(after=self._filler_seconds)
        return await self._output.say(answer)

    def _is_heard(self) -> bool:
        return self._output.is_heard()

    async def _cut(self) -> bool:
        cancelled = await self._cancel_answer()
        await self._output.stop_filler()
        unheard = self._output.withdraw()
        self._unfinished = self._unfinished or unheard > 0
        return cancelled or unheard > 0
