"""One open line to Gemini Live."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from jackfield.transport.events import Closed, Event, Trouble
from jackfield.transport.protocol import Opening, ToolResult, TransportError
from jackfield.transport.queue import EventQueue
from jackfield_schemas.names import ToolNames
from websockets.exceptions import ConnectionClosed

from jackfield_gemini import troubles
from jackfield_gemini.live.calls import Calls
from jackfield_gemini.live.microphone import Microphone
from jackfield_gemini.live.reading import Reader
from jackfield_gemini.live.setup import live_config, past_turns
from jackfield_gemini.live.wire import Wire
from jackfield_gemini.options import Options

if TYPE_CHECKING:
    from google.genai import Client

_log = logging.getLogger(__name__)

GRACE_SECONDS = 0.5
"""A call that was only shown in the model's turn is meant when so much silence follows it."""

STOP_NOTE = "[Note: the user stopped you here.]"


class LiveConnection:
    """Verbs out by the wire, events in by a queue; a task of its own reads the socket."""

    def __init__(self, wire: Wire, calls: Calls, stack: AsyncExitStack) -> None:
        self._wire = wire
        self._stack = stack
        self._reader = Reader(calls)
        self._calls = calls
        self._microphone = Microphone(wire)
        self._events = EventQueue()
        self._notes: list[str] = []
        self._speak_of_notes = False
        self._pump = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, client: Client, options: Options, opening: Opening) -> LiveConnection:
        """Connect, set the session up, and tell it what was said before."""
        config = live_config(opening, options)
        stack = AsyncExitStack()
        try:
            async with asyncio.timeout(options.connect_timeout):
                live = client.aio.live.connect(model=options.voice_model, config=config)
                session = await stack.enter_async_context(live)
                if session.setup_complete is None:
                    raise TransportError("server_error", "the provider did not confirm the session")
                wire = Wire(session)
                if past := past_turns(opening):
                    await wire.send_turns(past, answer=True)
        except BaseException as error:
            await stack.aclose()
            if isinstance(error, Exception):
                raise troubles.of_exception(error) from None
            raise
        scheduling = options.scheduling.upper() if options.calls == "non_blocking" else None
        return cls(wire, Calls(ToolNames(opening.declarations), scheduling), stack)

    @property
    def resume(self) -> str | None:
        """The handle of the session, while it can be resumed: not while calls are open."""
        return self._reader.resume

    def events(self) -> AsyncIterator[Event]:
        """Everything that comes, in order, up to `Closed`."""
        return aiter(self._events)

    async def send_text(self, text: str) -> None:
        """A message of the user; the model stops what it says and answers."""
        turns = [*self._notes, text]
        self._notes.clear()
        self._speak_of_notes = False
        await self._say(turns, answer=True)

    async def send_audio(self, pcm: bytes) -> None:
        """What the user says: PCM16, 24 kHz, mono."""
        if not self._events.closed:
            await self._send(self._microphone.send(pcm))

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Answers to calls; what was cancelled is not answered, but what it did is told.

        A model that waits for its calls goes on in any case; one that does not can take a result in silence.
        """
        answers, notes = self._calls.answer(results, respond=respond)
        self._notes += notes
        if answers and not self._events.closed:
            if self._notes and not self._calls.open:
                # The model speaks next, and must know them then; on their own they would cut it short.
                answers[-1]["response"] = {**answers[-1]["response"], "context": self._notes}
                self._notes, self._speak_of_notes = [], False
            await self._send(self._wire.send_results(answers))
        await self._tell()

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Tell the model something, once it neither speaks, nor is about to, nor waits for calls."""
        self._notes.append(text)
        self._speak_of_notes = self._speak_of_notes or respond
        await self._tell()

    async def interrupt(self) -> None:
        """Stop what the model is saying; the rest is dropped here until the provider has stopped it too."""
        stopped = list(self._reader.mute())
        for event in stopped:
            self._events.put_nowait(event)
        if stopped:
            await self._say([STOP_NOTE], answer=False)

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Note how much of a turn was heard, for the model to know before its next one."""
        if note := self._reader.spoken.note(item, heard_ms):
            self._notes.append(note)
            await self._tell()

    async def close(self) -> None:
        """Hang up."""
        self._events.close(Closed())
        self._microphone.close()
        self._pump.cancel()
        await asyncio.wait((self._pump,))
        await self._stack.aclose()

    async def _tell(self) -> None:
        busy = self._reader.speaking or self._reader.awaited or self._calls.open
        if self._notes and not busy:
            notes, answer = self._notes, self._speak_of_notes
            self._notes, self._speak_of_notes = [], False
            await self._say(notes, answer=answer)

    async def _say(self, texts: Sequence[str], *, answer: bool) -> None:
        if not self._events.closed:
            self._reader.cut_by_us = self._reader.speaking
            self._reader.awaited = self._reader.awaited or answer
            await self._send(self._wire.send_turns([("user", text) for text in texts], answer=answer))

    async def _send(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except ConnectionClosed:
            _log.debug("the connection ended while something was sent; its end is told as an event")

    async def _read(self) -> None:
        queue, reader, wire = self._events, self._reader, self._wire
        try:
            while True:
                try:
                    if self._calls.held:
                        async with asyncio.timeout(GRACE_SECONDS):
                            message = await wire.receive()
                    else:
                        message = await wire.receive()
                    events = reader.read(message)
                except TimeoutError:
                    events = list(reader.settle())
                except (ValueError, TypeError, AttributeError, KeyError) as error:
                    _log.warning("a message of Gemini could not be read: %s", type(error).__name__)
                    events = [Trouble("server_error", "a message of the provider could not be read")]
                for event in events:
                    queue.put_nowait(event)
                await queue.room()
                if self._notes:
                    await self._tell()
        except Exception as error:  # noqa: BLE001 - whatever ends the reading ends the connection
            ended = troubles.of_exception(error)
            queue.close(Closed(ended.code, ended.detail))
            self._microphone.close()
            await self._stack.aclose()
