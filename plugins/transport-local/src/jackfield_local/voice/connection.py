"""A conversation by voice: what the user says goes to a mind, and what it answers is said aloud."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from jackfield.transport.events import (
    Closed,
    Event,
    Interrupted,
    SpeechStarted,
    ToolCalls,
    Trouble,
    TurnComplete,
)
from jackfield.transport.protocol import Opening, ToolResult, VoiceSettings
from jackfield.transport.queue import EventQueue

from jackfield_local.mind import LONGEST_TEXT, Dialogue, PendingCalls, Thought
from jackfield_local.models import speech
from jackfield_local.voice.engines import Engines, in_worker
from jackfield_local.voice.input import SpeechInput
from jackfield_local.voice.output import FILLER_SECONDS, SpeechOutput

_log = logging.getLogger(__name__)


class VoiceConnection:
    """A line to a mind in this process, with speech input and output."""

    def __init__(
        self,
        dialogue: Dialogue,
        engines: Engines,
        voice: VoiceSettings,
        *,
        dead_air: float = FILLER_SECONDS,
    ) -> None:
        self._dialogue = dialogue
        self._dead_air = dead_air
        self._events = EventQueue()
        self._output = SpeechOutput(engines.synthesiser, self._events, transcribe=voice.transcribe)
        self._input = SpeechInput(engines, voice, self._events, self._speech_began, self._heard)
        self._words: list[str] = []
        self._calls: PendingCalls | None = None
        self._results: tuple[ToolResult, ...] = ()
        self._due = False
        self._untold = False
        self._asking: tuple[str, tuple[ToolResult, ...]] | None = None
        self._answering: asyncio.Task[None] | None = None
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def open(cls, dialogue: Dialogue, opening: Opening) -> VoiceConnection:
        """Load what is not loaded yet, and listen; `TransportError` when there is no voice to be had here."""
        language = opening.voice.language or "en"
        if language.split("-")[0].lower() != "en":
            _log.warning("the local voice hears and speaks English only, not %s", language)
        engines = await in_worker(speech.engines, opening.voice.voice)
        return cls(dialogue, engines, opening.voice)

    @property
    def resume(self) -> str | None:
        """Nothing: what was said comes back with the opening."""
        return None

    def events(self) -> AsyncIterator[Event]:
        """Everything that comes, in order, up to `Closed`."""
        return aiter(self._events)

    # What the host does.

    async def send_text(self, text: str) -> None:
        """A message of the user; whatever is being said is over."""
        await self._stop()
        self._output.awaited = True
        self._words.append(text[:LONGEST_TEXT])
        self._next()

    async def send_audio(self, pcm: bytes) -> None:
        """What the user says: PCM16, 24 kHz, mono."""
        await self._input.add(pcm)

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Answers to calls; with the last of them the mind goes on, or with what the user says next."""
        answers = self._calls.complete(results) if self._calls is not None else None
        if answers is not None:
            self._results, self._calls = answers, None
            self._due = self._due or respond
            self._next()

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Something the mind should know; `respond` has it speak of it, once nobody else does."""
        if not self._events.closed:
            self._dialogue.learn(text[:LONGEST_TEXT])
            self._due = self._due or respond
            self._next()

    async def speak(self, text: str) -> None:
        """Say a filler, unless the user has heard one in this turn or one side speaks."""
        if self._answering is None and not self._input.busy and not self._events.closed:
            await self._output.stop_filler()
            self._output.start_filler(text)

    async def interrupt(self) -> None:
        """Stop what is being said, and do not answer what is still being written down."""
        forgotten = self._input.forget()
        if not await self._stop() and forgotten:
            self._events.put_nowait(Interrupted())
        self._next()

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Tell the mind which words were heard of what it said last, when it was not all of them."""
        spoken = self._output.spoken
        if item != spoken.item or self._events.closed:
            return
        await self._stop()
        # A message that ends in calls is not over; what was said before them is not what matters of it.
        waits = self._calls is not None or self._results
        if not waits and (self._untold or not spoken.whole(heard_ms)):
            self._untold = False
            self._dialogue.interrupted(spoken.heard(heard_ms))
            spoken.item = ""

    async def close(self) -> None:
        """Hang up."""
        self._events.close(Closed())
        await self._output.stop_filler()
        tasks = [task for task in (self._listening, self._answering) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    # What the user says.

    async def _speech_began(self) -> None:
        """The user speaks: whatever is being said stops at once."""
        asking = self._asking
        cut = await self._cut()
        if asking is not None:  # The mind does not know of it yet; it is asked when the user has spoken.
            words, _ = asking
            self._words[:0] = [words] if words else []
            self._due = self._due or not words
        await self._events.put(SpeechStarted())
        if cut:
            self._events.put_nowait(Interrupted())

    async def _heard(self, text: str | None) -> None:
        """The words of a turn; a noise that was taken for one leaves things as they were."""
        if text is None:
            pass  # The user wanted it no more.
        elif text:
            self._output.awaited = True
            self._words.append(text)
        elif self._results:
            self._due = True
        elif self._calls is None and not self._words and not self._due:
            await self._events.put(Trouble("no_audio", "no words were found in what was said"))
        self._next()

    async def _listen(self) -> None:
        try:
            await self._input.run()
        except Exception:  # noqa: BLE001 - whatever ends the listening ends the connection
            _log.exception("the local speech input failed")
            self._events.close(Closed("server_error", "the local speech input failed; the log says more"))

    # What the mind says.

    def _next(self) -> None:
        """Let the mind speak, when it is its turn and it has something to answer."""
        mine = self._answering is None and self._calls is None and not self._input.busy
        if not mine or self._events.closed or not (self._words or self._due):
            return
        words, results = " ".join(self._words), self._results
        self._words, self._results, self._due = [], (), False
        self._asking = words, results
        if words or results:
            self._output.start_filler(after=self._dead_air)
        self._answering = asyncio.create_task(self._answer(words, results))

    async def _answer(self, words: str, results: tuple[ToolResult, ...]) -> None:
        end: ToolCalls | TurnComplete | Trouble = TurnComplete()
        try:
            thoughts = await self._begin(words, results)
            self._asking = None
            end = await self._output.say(thoughts) or end
        except Exception:  # noqa: BLE001 - a mind is anybody's; the line stays open
            _log.exception("the local mind failed in an answer")
            end = Trouble("server_error", "the local mind failed; the log says more")
        if not isinstance(end, ToolCalls):  # With calls the user goes on waiting, and so does the filler.
            await self._output.stop_filler()
        self._answering = self._asking = None
        if isinstance(end, ToolCalls):
            self._calls = PendingCalls(end.calls)
        self._events.put_nowait(end)
        self._next()

    async def _begin(self, words: str, results: tuple[ToolResult, ...]) -> AsyncIterator[Thought]:
        """Ask the mind, once it knows all that happened before."""
        dialogue = self._dialogue
        if results and not words:
            return dialogue.go_on(results)
        if results:
            # The mind takes in the results of its calls without a word about them: the user has gone on.
            self._asking = words, ()
            async with aclosing(dialogue.go_on(results)) as thoughts:  # type: ignore[type-var]
                await anext(thoughts, None)
            dialogue.interrupted("")
        elif self._untold:
            dialogue.interrupted(self._output.spoken.heard())
        self._untold = False
        self._output.begin_turn()
        return dialogue.answer(words) if words else dialogue.respond()

    async def _stop(self) -> bool:
        """Cut short what is being said, and tell so; whether there was something."""
        cut = await self._cut()
        if cut:
            self._events.put_nowait(Interrupted())
        return cut

    async def _cut(self) -> bool:
        answering, self._answering = self._answering, None
        asking, self._asking = self._asking, None
        if asking is not None:
            self._results = self._results or asking[1]
        if answering is not None:
            answering.cancel()
            await asyncio.wait((answering,))
        await self._output.stop_filler()
        unheard = self._output.withdraw()
        self._untold = self._untold or unheard > 0 or (answering is not None and asking is None)
        return answering is not None or unheard > 0
