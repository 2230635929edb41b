"""A conversation over chat completions: every turn is a request that repeats what was said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from jackfield.transport.events import (
    Closed,
    Event,
    Interrupted,
    TextDelta,
    ToolCalls,
    Trouble,
    TurnComplete,
)
from jackfield.transport.protocol import Opening, ToolResult, TransportError
from jackfield.transport.queue import EventQueue

from jackfield_openai.chat.history import History
from jackfield_openai.chat.reply import Reply
from jackfield_openai.chat.request import Requests
from jackfield_openai.declared_tools import DeclaredTools
from jackfield_openai.faults import of_sdk

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class ChatConnection:
    """One conversation; there is never more than one request under way."""

    def __init__(self, client: AsyncOpenAI, requests: Requests, opening: Opening) -> None:
        self._client = client
        self._requests = requests
        self._tools = DeclaredTools(opening.declarations)
        self._history = History(opening)
        self._answer_tokens = opening.answer_tokens
        self._events = EventQueue()
        self._turn: asyncio.Task[None] | None = None
        self._reply = Reply()
        self._wanted = False

    @property
    def resume(self) -> str | None:
        """There is nothing at the provider's to take up."""
        return None

    def events(self) -> AsyncIterator[Event]:
        """What comes, up to `Closed`."""
        return aiter(self._events)

    async def send_text(self, text: str) -> None:
        """A message of the user; answered at once, or after what is under way."""
        self._history.add("user", text)
        self._want()

    async def send_audio(self, pcm: bytes) -> None:
        """Text carries no sound."""

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Results; the last of a message lets the model go on."""
        if self._history.answered(results) and (respond or self._wanted):
            self._want()

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """A note for the model, in the next request."""
        self._history.add("system", text)
        if respond:
            self._want()

    async def interrupt(self) -> None:
        """End the answer that is being written, and remember it as far as it came."""
        turn, reply = self._turn, self._reply
        if turn is None:
            return
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        if self._turn is turn:
            self._turn = None
            self._history.said(reply.text)
            self._events.put_nowait(Interrupted())
            self._go_on()

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Text is not heard."""

    async def close(self) -> None:
        """Drop what is under way."""
        self._events.close(Closed())
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)

    def _want(self) -> None:
        self._wanted = True
        self._go_on()

    def _go_on(self) -> None:
        """Ask for an answer, if one is wanted and none is under way."""
        if (
            self._wanted
            and self._turn is None
            and not self._history.has_open_calls
            and not self._events.closed
        ):
            self._wanted = False
            self._reply = Reply()
            self._turn = asyncio.create_task(self._take_turn(self._reply))

    async def _take_turn(self, reply: Reply) -> None:
        try:
            await self._read(reply)
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises ends this turn and nothing else
            self._fail(reply, of_sdk(error))
        else:
            self._settle(reply)
        self._turn = None
        self._go_on()

    async def _read(self, reply: Reply) -> None:
        messages = self._history.for_request()
        limit = self._answer_tokens
        async with self._requests.stream(self._client, messages, self._tools.declarations, limit) as chunks:
            async for chunk in chunks:
                if text := reply.take(chunk):
                    await self._events.put(TextDelta(text))

    def _settle(self, reply: Reply) -> None:
        """The answer has ended; say how, without a pause in which it could be interrupted."""
        if reply.usage:
            self._events.put_nowait(reply.usage)
        if reply.finish is None:
            self._fail(reply, TransportError("network", "the answer broke off"))
        elif reply.finish == "content_filter":
            self._fail(reply, TransportError("content_refused", "the answer was cut by the content filter"))
        elif self._answer_tokens and reply.finish == "length" and (reply.calls or not reply.text):
            # A model that thinks first may use the limit up before it says a word.
            detail = f"the answer ran into answer_tokens = {self._answer_tokens} before it could be used"
            self._fail(reply, TransportError("server_error", detail))
        elif reply.calls and reply.finish == "length":
            # The last call is likely to be cut, and nobody can tell what the others belong to.
            self._fail(
                reply, TransportError("context_length_exceeded", "the calls ran into the length limit")
            )
        elif reply.calls:
            calls = tuple(self._tools.call(each.name, each.arguments, each.id) for each in reply.calls)
            self._history.called(reply, [call.tool_id for call in calls])
            self._events.put_nowait(ToolCalls(calls))
        else:
            self._history.said(reply.text)
            self._events.put_nowait(TurnComplete())

    def _fail(self, reply: Reply, error: TransportError) -> None:
        """A turn that came to nothing; what was said of it stays said."""
        self._history.said(reply.text)
        if error.code == "authentication":
            self._events.close(Closed(error.code, error.detail))
            return
        waiting = f" (try again in {error.retry_after:g} s)" if error.retry_after else ""
        self._events.put_nowait(Trouble(error.code, error.detail + waiting))
