"""A text conversation with Gemini: history, streamed answers and pending calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import orjson
from google.genai.types import (
    AutomaticFunctionCallingConfig,
    Content,
    FunctionCall,
    FunctionResponse,
    GenerateContentConfig,
    GenerateContentResponse,
    Part,
)
from jackfield.contract.tool import ToolCall
from jackfield.transport.events import (
    Closed,
    Event,
    Interrupted,
    ProviderError,
    TextDelta,
    ToolCalls,
    TurnComplete,
    Usage,
)
from jackfield.transport.protocol import ConnectionConfig, ToolResult, TransportError
from jackfield.transport.queue import EventQueue
from jackfield_schemas.names import ToolNames

from jackfield_gemini import errors
from jackfield_gemini.settings import GeminiSettings

if TYPE_CHECKING:
    from google.genai import Client

_WORDS = {"text", "thought"}


class StreamedAnswer:
    """An answer that is being received."""

    def __init__(self) -> None:
        self.blocked = ""
        """Why the request itself was rejected."""
        self.finish = ""
        """Why the answer ended; empty until then."""
        self.calls: list[FunctionCall] = []
        self._parts: list[Part] = []
        self._usage: Usage | None = None

    def add(self, chunk: GenerateContentResponse) -> Iterator[Event]:
        """Add a chunk; yield the events for the user."""
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            self.blocked = str(chunk.prompt_feedback.block_reason.value)
        if used := chunk.usage_metadata:
            taken = (used.prompt_token_count or 0) + (used.tool_use_prompt_token_count or 0)
            given = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
            self._usage = Usage(taken, given)
        candidate = chunk.candidates[0] if chunk.candidates else None
        if candidate is None:
            return
        for part in (candidate.content and candidate.content.parts) or ():
            self._keep(part)
            if part.function_call:
                self.calls.append(part.function_call)
            elif part.text and not part.thought:
                yield TextDelta(part.text)
        if candidate.finish_reason:
            self.finish = str(candidate.finish_reason.value)

    def usage(self) -> Iterator[Event]:
        """Yield the token usage; every chunk counts from the start, so the last count is the total."""
        if self._usage:
            yield self._usage

    def tool_calls(self, names: ToolNames) -> tuple[ToolCall, ...]:
        """Return the function calls as tool calls."""
        return tuple(
            ToolCall(names.tool_id(call.name or ""), orjson.dumps(call.args or {}), call.id or None)
            for call in self.calls
        )

    @property
    def said(self) -> bool:
        """True if the user has received some of its text."""
        return any(part.text and not part.thought for part in self._parts)

    def content(self, *, whole: bool) -> Content | None:
        """Return the answer for the history: complete with its calls, or the text of a cancelled one.

        Parts are returned unchanged, because a model recognises its thoughts by their signatures.
        """
        parts = self._parts if whole else [part for part in self._parts if not part.function_call]
        return Content(role="model", parts=parts) if parts else None

    def _keep(self, part: Part) -> None:
        last = self._parts[-1] if self._parts else None
        if last is not None and _joins(last) and _joins(part) and bool(last.thought) == bool(part.thought):
            # Parts without a signature are joined; otherwise a long text would be stored in many parts.
            self._parts[-1] = last.model_copy(update={"text": (last.text or "") + (part.text or "")})
        else:
            self._parts.append(part)


def _joins(part: Part) -> bool:
    return part.text is not None and part.model_dump(exclude_none=True).keys() <= _WORDS


class CallBatch:
    """The calls of one message; Gemini accepts their results only together."""

    def __init__(self, calls: Sequence[FunctionCall], names: ToolNames) -> None:
        self._names = names
        self._calls = list(calls)
        self._answers: list[Any] = [None] * len(calls)

    def take(self, result: ToolResult) -> None:
        """Add a result; for a call without an id, it belongs to the first open call to that tool."""
        for index, call in enumerate(self._calls):
            if self._answers[index] is None and self._fits(call, result):
                self._answers[index] = orjson.loads(result.envelope)
                return

    @property
    def complete(self) -> bool:
        """True if every call has its result."""
        return all(answer is not None for answer in self._answers)

    def content(self) -> Content:
        """Return the results for the history, in the order of the calls."""
        parts = [
            Part(function_response=FunctionResponse(id=call.id, name=call.name, response=answer))
            for call, answer in zip(self._calls, self._answers, strict=True)
        ]
        return Content(role="user", parts=parts)

    def _fits(self, call: FunctionCall, result: ToolResult) -> bool:
        if call.id:
            return call.id == result.call_id
        return self._names.tool_id(call.name or "") == result.tool_id


class GeminiTextConnection:
    """A text conversation; each answer is a separate request."""

    def __init__(self, client: Client, settings: GeminiSettings, opening: ConnectionConfig) -> None:
        self._client = client
        self._model = settings.text_model
        self._names = ToolNames(opening.declarations)
        self._config = _config(opening)
        self._history: list[Content] = [
            _words(said.text, "user" if said.speaker == "user" else "model")
            for said in opening.history
            if said.text
        ]
        self._events = EventQueue()
        self._waiting: list[Content] = []
        self._wanted = False
        self._batch: CallBatch | None = None
        self._answer: StreamedAnswer | None = None
        self._request: asyncio.Task[None] | None = None

    @property
    def resume(self) -> str | None:
        """None: the history is stored here, not at the provider."""
        return None

    def events(self) -> AsyncIterator[Event]:
        """Return the events, in order, up to `Closed`."""
        return aiter(self._events)

    async def send_text(self, text: str) -> None:
        """Add a user message; it waits for an active answer or for pending calls."""
        self._waiting.append(_words(text))
        self._wanted = True
        self._start_request()

    async def send_audio(self, pcm: bytes) -> None:
        """Ignored: text has no audio."""

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Add tool results; the last one starts the next request, unless `respond` is false."""
        if self._batch is None:
            return
        for result in results:
            self._batch.take(result)
        if self._batch.complete:
            self._history.append(self._batch.content())
            self._batch = None
            self._wanted = self._wanted or respond
            self._start_request()

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Add a note for the model to the next request, or send a request for it."""
        self._waiting.append(_words(text))
        self._wanted = self._wanted or respond
        self._start_request()

    async def interrupt(self) -> None:
        """Cancel the stream; the received text stays in the history."""
        request = self._request
        if request is None or self._answer is None:
            return
        answer, self._answer = self._answer, None
        request.cancel()
        await asyncio.wait((request,))
        self._remember(answer, whole=False)
        self._events.put_nowait(Interrupted())
        self._start_request()

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Ignored: text has no playback."""

    async def close(self) -> None:
        """Close the connection."""
        self._events.close(Closed())
        if self._request is not None:
            self._request.cancel()
            await asyncio.wait((self._request,))

    def _start_request(self) -> None:
        if self._events.closed or self._answer is not None or self._batch is not None:
            return
        self._history += self._waiting
        self._waiting.clear()
        if self._wanted:
            self._wanted = False
            self._answer = StreamedAnswer()
            self._request = asyncio.create_task(self._ask(self._answer))

    async def _ask(self, answer: StreamedAnswer) -> None:
        trouble: TransportError | None = None
        try:
            await self._stream(answer)
        except Exception as error:  # noqa: BLE001 - any failure here is a provider error
            trouble = errors.transport_error(error)
        if self._answer is not answer:
            return  # The answer was interrupted just as it ended.
        self._answer = None
        for event in self._ended(answer, trouble):
            self._events.put_nowait(event)
        self._start_request()

    async def _stream(self, answer: StreamedAnswer) -> None:
        contents: list[Any] = list(self._history)
        stream: Any = await self._client.aio.models.generate_content_stream(
            model=self._model, contents=contents, config=self._config
        )
        async with aclosing(stream):
            async for chunk in stream:
                for event in answer.add(chunk):
                    self._events.put_nowait(event)
                await self._events.room()

    def _ended(self, answer: StreamedAnswer, trouble: TransportError | None) -> Iterator[Event]:
        """Update the history for the end of an answer, and yield its events."""
        yield from answer.usage()
        code, detail = _error_of(answer, trouble)
        if code:
            if answer.blocked:
                # A rejected message would be rejected again with every later request.
                self._history.pop()
            self._remember(answer, whole=False)
            yield ProviderError(code, detail)
        elif answer.calls and answer.finish != "MAX_TOKENS":
            self._remember(answer, whole=True)
            self._batch = CallBatch(answer.calls, self._names)
            yield ToolCalls(answer.tool_calls(self._names))
        else:
            self._remember(answer, whole=not answer.calls)
            yield TurnComplete()

    def _remember(self, answer: StreamedAnswer, *, whole: bool) -> None:
        if content := answer.content(whole=whole):
            self._history.append(content)


def _error_of(answer: StreamedAnswer, trouble: TransportError | None) -> tuple[str, str]:
    """Return the error code and its description; empty if nothing went wrong."""
    if trouble is not None:
        wait = f"; retry in {trouble.retry_after:g} s" if trouble.retry_after else ""
        return trouble.code, trouble.detail + wait
    if answer.blocked:
        return "content_refused", f"the question was blocked: {answer.blocked}"
    if not answer.finish:
        return "network", "the answer ended unexpectedly"
    if answer.finish == "MAX_TOKENS" and not answer.said:
        return "server_error", "the model reached its limit before it produced any text"
    return errors.FINISH_REASONS.get(answer.finish, ""), f"the answer ended with {answer.finish}"


def _config(opening: ConnectionConfig) -> GenerateContentConfig:
    declared = list(opening.declarations.values())
    fields: dict[str, Any] = {
        "automatic_function_calling": AutomaticFunctionCallingConfig(disable=True),
        "system_instruction": opening.instructions or None,
        "tools": [{"function_declarations": declared}] if declared else None,
        "max_output_tokens": opening.answer_tokens or None,
    }
    try:
        return GenerateContentConfig.model_validate(fields)
    except ValueError as error:
        detail = f"the SDK rejects the session's configuration: {error}"
        raise TransportError("invalid_request_error", detail[: errors.MAX_DETAIL]) from None


def _words(text: str, role: str = "user") -> Content:
    return Content(role=role, parts=[Part(text=text)])
