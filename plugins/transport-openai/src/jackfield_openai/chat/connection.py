"""A text conversation over chat completions: every turn is a request with the whole history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jackfield.transport.events import (
    Closed,
    Event,
    Interrupted,
    ProviderError,
    TextDelta,
    ToolCalls,
    TurnComplete,
)
from jackfield.transport.protocol import ConnectionConfig, ToolResult, TransportError
from jackfield.transport.queue import EventQueue

from jackfield_openai.chat.history import History, Reply
from jackfield_openai.declared_tools import DeclaredTools
from jackfield_openai.errors import transport_error
from jackfield_openai.settings import DEFAULT_TEXT_MODEL, OpenAISettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk


class CompletionRequests:
    """Sends completion requests, and remembers which parameters the server rejects."""

    def __init__(self, settings: OpenAISettings) -> None:
        self._fixed: dict[str, Any] = {"model": settings.text_model or DEFAULT_TEXT_MODEL, "stream": True}
        if settings.temperature is not None:
            self._fixed["temperature"] = settings.temperature
        self._counts_tokens = True
        # OpenAI's reasoning models accept only the new name; many compatible servers only the old one.
        self._limits = ["max_completion_tokens", "max_tokens"]
        if settings.base_url:
            self._limits.reverse()

    async def stream(
        self, client: AsyncOpenAI, messages: Sequence[Any], tools: Sequence[Any], answer_tokens: int = 0
    ) -> AsyncStream[ChatCompletionChunk]:
        """Return the chunks of an answer; `answer_tokens` limits its length.

        Parameters that the server rejects are omitted or renamed from now on.
        """
        from openai import BadRequestError, UnprocessableEntityError

        while True:
            asked = {**self._fixed, "messages": messages}
            if tools:
                asked["tools"] = tools
            if self._counts_tokens:
                asked["stream_options"] = {"include_usage": True}
            if answer_tokens:
                asked[self._limits[0]] = answer_tokens
            try:
                stream: AsyncStream[ChatCompletionChunk] = await client.chat.completions.create(**asked)
            except (BadRequestError, UnprocessableEntityError) as error:
                if not self._adapt(f"{error.message} {error.param}", asked):
                    raise
            else:
                return stream

    def _adapt(self, refusal: str, asked: Mapping[str, Any]) -> bool:
        """Adapt the parameters to a rejection; return whether that is possible."""
        if "stream_options" in asked and "stream_options" in refusal:
            self._counts_tokens = False
            return True
        if len(self._limits) > 1 and self._limits[0] in asked and self._limits[0] in refusal:
            del self._limits[0]
            return True
        return False


class ChatConnection:
    """One conversation; at most one request is active."""

    def __init__(self, client: AsyncOpenAI, requests: CompletionRequests, opening: ConnectionConfig) -> None:
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
        """None: the provider keeps no session."""
        return None

    def events(self) -> AsyncIterator[Event]:
        """Return the events, up to `Closed`."""
        return aiter(self._events)

    async def send_text(self, text: str) -> None:
        """Add a user message; it is answered at once, or after the active turn."""
        self._history.add("user", text)
        self._start_turn(wanted=True)

    async def send_audio(self, pcm: bytes) -> None:
        """Ignored: text has no audio."""

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Add tool results; the last one of a message starts the next turn."""
        if self._history.add_results(results) and (respond or self._wanted):
            self._start_turn(wanted=True)

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Add a note for the model to the next request."""
        self._history.add("system", text)
        if respond:
            self._start_turn(wanted=True)

    async def interrupt(self) -> None:
        """Cancel the active answer, and keep the part that was received."""
        turn, reply = self._turn, self._reply
        if turn is None:
            return
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        if self._turn is turn:
            self._turn = None
            self._history.add_answer(reply.text)
            self._events.put_nowait(Interrupted())
            self._start_turn()

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Ignored: text has no playback."""

    async def close(self) -> None:
        """Cancel the active turn."""
        self._events.close(Closed())
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)

    def _start_turn(self, *, wanted: bool = False) -> None:
        """Request an answer if one is wanted now or was wanted before, and none is active."""
        self._wanted = self._wanted or wanted
        blocked = self._turn is not None or self._history.open_calls or self._events.closed
        if self._wanted and not blocked:
            self._wanted = False
            self._reply = Reply()
            self._turn = asyncio.create_task(self._run_turn(self._reply))

    async def _run_turn(self, reply: Reply) -> None:
        """Request an answer and turn its stream into events."""
        requests, tools = self._requests, self._tools.declarations
        messages = self._history.for_request()
        try:
            async with await requests.stream(self._client, messages, tools, self._answer_tokens) as chunks:
                async for chunk in chunks:
                    if text := reply.take(chunk):
                        await self._events.put(TextDelta(text))
        except Exception as error:  # noqa: BLE001 - any error of the SDK ends only this turn
            self._fail(reply, transport_error(error))
        else:
            self._settle(reply)
        self._turn = None
        self._start_turn()

    def _settle(self, reply: Reply) -> None:
        """Emit the events for the end of an answer; has no await, so it cannot be interrupted."""
        if reply.finish is None:
            self._fail(reply, TransportError("network", "the answer ended unexpectedly"))
        elif reply.finish == "content_filter":
            self._fail(reply, TransportError("content_refused", "the content filter cut off the answer"))
        elif self._answer_tokens and reply.finish == "length" and (reply.calls or not reply.text):
            # A reasoning model may exhaust the limit before its first word.
            detail = f"the answer reached answer_tokens = {self._answer_tokens} before it could be used"
            self._fail(reply, TransportError("server_error", detail))
        elif reply.calls and reply.finish == "length":
            # The last call is probably cut off, and the others may depend on it.
            self._fail(reply, TransportError("context_length_exceeded", "the calls reached the length limit"))
        elif reply.calls:
            calls = tuple(self._tools.call(each.name, each.arguments, each.id) for each in reply.calls)
            self._history.add_calls(reply, [call.tool_id for call in calls])
            self._events.put_nowait(*reply.usage, ToolCalls(calls))
        else:
            self._history.add_answer(reply.text)
            self._events.put_nowait(*reply.usage, TurnComplete())

    def _fail(self, reply: Reply, error: TransportError) -> None:
        """Report a failed turn; the received text stays in the history."""
        self._history.add_answer(reply.text)
        self._events.put_nowait(*reply.usage)
        if error.code == "authentication":
            self._events.close(Closed(error.code, error.detail))
            return
        waiting = f" (try again in {error.retry_after:g} s)" if error.retry_after else ""
        self._events.put_nowait(ProviderError(error.code, error.detail + waiting))
