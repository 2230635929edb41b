"""A connection to Gemini Live."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from jackfield.transport.events import Closed, Event, ProviderError
from jackfield.transport.protocol import ConnectionConfig, ToolResult, TransportError
from jackfield.transport.queue import EventQueue
from jackfield_schemas.names import ToolNames
from websockets.exceptions import ConnectionClosed

from jackfield_gemini import errors
from jackfield_gemini.live.audio import MicrophoneStream
from jackfield_gemini.live.calls import LiveCalls
from jackfield_gemini.live.events import LiveEvents
from jackfield_gemini.live.session import LiveSocket, live_config, past_turns
from jackfield_gemini.settings import GeminiSettings

if TYPE_CHECKING:
    from google.genai import Client

_log = logging.getLogger(__name__)

GRACE_SECONDS = 0.5
"""A call that only appeared in the model's turn counts after this much silence."""

STOP_NOTE = "[Note: the user stopped you here.]"


class LiveConnection:
    """A Live connection; a task reads the socket and fills the event queue."""

    def __init__(self, socket: LiveSocket, calls: LiveCalls, stack: AsyncExitStack) -> None:
        self._socket = socket
        self._stack = stack
        self._reader = LiveEvents(calls)
        self._calls = calls
        self._microphone = MicrophoneStream(socket)
        self._events = EventQueue()
        self._notes: list[str] = []
        self._speak_of_notes = False
        self._pump = asyncio.create_task(self._read())

    @classmethod
    async def open(
        cls, client: Client, settings: GeminiSettings, opening: ConnectionConfig
    ) -> LiveConnection:
        """Connect, configure the session and send the history."""
        config = live_config(opening, settings)
        stack = AsyncExitStack()
        try:
            async with asyncio.timeout(settings.connect_timeout):
                live = client.aio.live.connect(model=settings.voice_model, config=config)
                session = await stack.enter_async_context(live)
                if session.setup_complete is None:
                    raise TransportError("server_error", "the provider did not confirm the session")
                socket = LiveSocket(session)
                if past := past_turns(opening):
                    await socket.send_turns(past, answer=True)
        except BaseException as error:
            await stack.aclose()
            if isinstance(error, Exception):
                raise errors.transport_error(error) from None
            raise
        names = ToolNames(opening.declarations)
        if settings.calls == "non_blocking":
            return NonBlockingConnection(socket, LiveCalls(names, settings.scheduling.upper()), stack)
        return cls(socket, LiveCalls(names, None), stack)

    @property
    def resume(self) -> str | None:
        """The session's resumption handle; None while calls are open."""
        return self._reader.resume

    def events(self) -> AsyncIterator[Event]:
        """Return the events, in order, up to `Closed`."""
        return aiter(self._events)

    async def send_text(self, text: str) -> None:
        """Send a user message; the model stops speaking and answers."""
        turns = [*self._notes, text]
        self._notes.clear()
        self._speak_of_notes = False
        await self._say(turns, answer=True)

    async def send_audio(self, pcm: bytes) -> None:
        """Send microphone audio: PCM16, 24 kHz, mono."""
        if not self._events.closed:
            await self._send(self._microphone.send(pcm))

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Send tool results; a cancelled call gets no result, but a note if it ran.

        A model that waits for its calls continues in any case; other models can receive a result silently.
        """
        answers, notes = self._calls.answer(results, respond=respond)
        self._notes += notes
        if answers and not self._events.closed:
            if self._notes and not self._calls.open:
                # The model speaks next and needs the notes then; sent separately, they would interrupt it.
                answers[-1]["response"] = {**answers[-1]["response"], "context": self._notes}
                self._notes, self._speak_of_notes = [], False
            await self._send(self._socket.send_results(answers))
        await self._send_notes()

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Send a note for the model as soon as it is neither speaking nor about to, and no calls are open."""
        self._notes.append(text)
        self._speak_of_notes = self._speak_of_notes or respond
        await self._send_notes()

    async def interrupt(self) -> None:
        """Stop the model; the rest of its turn is dropped here until the provider also stops it."""
        stopped = list(self._reader.mute())
        for event in stopped:
            self._events.put_nowait(event)
        if stopped:
            await self._say([STOP_NOTE], answer=False)

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Record how much of a turn was played, for a note before the model's next turn."""
        if note := self._reader.spoken.note(item, heard_ms):
            self._notes.append(note)
            await self._send_notes()

    async def close(self) -> None:
        """Close the connection."""
        self._events.close(Closed())
        self._microphone.close()
        self._pump.cancel()
        await asyncio.wait((self._pump,))
        await self._stack.aclose()

    async def _send_notes(self) -> None:
        busy = self._reader.speaking or self._reader.answer_pending or self._calls.open
        if self._notes and not busy:
            notes, answer = self._notes, self._speak_of_notes
            self._notes, self._speak_of_notes = [], False
            await self._say(notes, answer=answer)

    async def _say(self, texts: Sequence[str], *, answer: bool) -> None:
        if not self._events.closed:
            self._reader.interrupted_by_host = self._reader.speaking
            self._reader.answer_pending = self._reader.answer_pending or answer
            await self._send(self._socket.send_turns([("user", text) for text in texts], answer=answer))

    async def _send(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except ConnectionClosed:
            _log.debug("the connection ended while something was sent; an event reports the end")

    async def _read(self) -> None:
        queue, reader, socket = self._events, self._reader, self._socket
        try:
            while True:
                try:
                    if self._calls.held:
                        async with asyncio.timeout(GRACE_SECONDS):
                            message = await socket.receive()
                    else:
                        message = await socket.receive()
                    events = reader.read(message)
                except TimeoutError:
                    events = list(reader.settle())
                except (ValueError, TypeError, AttributeError, KeyError) as error:
                    _log.warning("a message from Gemini could not be read: %s", type(error).__name__)
                    events = [ProviderError("server_error", "a message from the provider could not be read")]
                for event in events:
                    queue.put_nowait(event)
                await queue.room()
                if self._notes:
                    await self._send_notes()
        except Exception as error:  # noqa: BLE001 - any error in reading ends the connection
            ended = errors.transport_error(error)
            queue.close(Closed(ended.code, ended.detail))
            self._microphone.close()
            await self._stack.aclose()


class NonBlockingConnection(LiveConnection):
    """A connection whose model does not wait for its calls, so it takes parts of their results."""

    async def send_partial(self, part: ToolResult) -> None:
        """Send a part of a result; a call that was cancelled or has no id gets none."""
        answer = self._calls.part(part)
        if answer is not None and not self._events.closed:
            await self._send(self._socket.send_results([answer]))
            await self._send_notes()
