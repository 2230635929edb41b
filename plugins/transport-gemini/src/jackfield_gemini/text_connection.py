"""A text conversation with Gemini: history, streamed answers and pending calls."""

from __future__ import annotations

from collections.abc import Iterator
import orjson
from google.genai.types import (
    Content,
    FunctionCall,
    GenerateContentResponse,
    Part,
)
from jackfield.contract.call import ToolCall
from jackfield.transport.events import Event, TextDelta, Usage
from jackfield_schemas.names import ToolNames
from collections.abc import Sequence
from typing import Any
from google.genai.types import Content, FunctionCall, FunctionResponse, Part
from jackfield.transport.protocol import ToolResult
import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from google.genai.types import AutomaticFunctionCallingConfig, Content, GenerateContentConfig, Part
from jackfield.transport.events import Closed, Event, Interrupted, ToolCalls, Trouble, TurnComplete
from jackfield.transport.protocol import Opening, ToolResult, TransportError
from jackfield.transport.queue import EventQueue
from jackfield_gemini import troubles
from jackfield_gemini.settings import GeminiSettings

if TYPE_CHECKING:
    from google.genai import Client

_WORDS = {"text", "thought"}


class StreamedAnswer:
    """What has come of an answer so far, and how it ended."""

    def __init__(self) -> None:
        self.blocked = ""
        """Why the question itself was refused."""
        self.finish = ""
        """Why the answer ended; empty while it has not."""
        self.calls: list[FunctionCall] = []
        self._parts: list[Part] = []
        self._usage: Usage | None = None

    def add(self, chunk: GenerateContentResponse) -> Iterator[Event]:
        """Take the next piece in; what of it is for the user comes out."""
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
        """The tokens; every piece counts them from the start, so the last count is the one."""
        if self._usage:
            yield self._usage

    def tool_calls(self, names: ToolNames) -> tuple[ToolCall, ...]:
        """The calls, in the kernel's words."""
        return tuple(
            ToolCall(names.tool_id(call.name or ""), orjson.dumps(call.args or {}), call.id or None)
            for call in self.calls
        )

    @property
    def said(self) -> bool:
        """Whether the user has read something of it."""
        return any(part.text and not part.thought for part in self._parts)

    def content(self, *, whole: bool) -> Content | None:
        """It, for the history: with its calls, or as what was said of an answer that was cut short.

        Parts go back as they came, because a model recognises its own thoughts by the signatures on them.
        """
        parts = self._parts if whole else [part for part in self._parts if not part.function_call]
        return Content(role="model", parts=parts) if parts else None

    def _keep(self, part: Part) -> None:
        last = self._parts[-1] if self._parts else None
        if last is not None and _joins(last) and _joins(part) and bool(last.thought) == bool(part.thought):
            # Words that carry no signature may be put together, or a long talk would be sent in crumbs.
            self._parts[-1] = last.model_copy(update={"text": (last.text or "") + (part.text or "")})
        else:
            self._parts.append(part)


def _joins(part: Part) -> bool:
    return part.text is not None and part.model_dump(exclude_none=True).keys() <= _WORDS


class Exchange:
    """Complete when every call has its answer; Gemini takes them only all together."""

    def __init__(self, calls: Sequence[FunctionCall], names: ToolNames) -> None:
        self._names = names
        self._calls = list(calls)
        self._answers: list[Any] = [None] * len(calls)

    def take(self, result: ToolResult) -> None:
        """An answer; one to a call without an id belongs to the first open call of that tool."""
        for index, call in enumerate(self._calls):
            if self._answers[index] is None and self._fits(call, result):
                self._answers[index] = orjson.loads(result.envelope)
                return

    @property
    def complete(self) -> bool:
        """Whether the model can go on."""
        return all(answer is not None for answer in self._answers)

    def content(self) -> Content:
        """The answers for the history, in the order of the calls."""
        parts = [
            Part(function_response=FunctionResponse(id=call.id, name=call.name, response=answer))
            for call, answer in zip(self._calls, self._answers, strict=True)
        ]
        return Content(role="user", parts=parts)

    def _fits(self, call: FunctionCall, result: ToolResult) -> bool:
        if call.id:
            return call.id == result.call_id
        return self._names.tool_id(call.name or "") == result.tool_id


class TextConnection:
    """A line that stands as long as nobody hangs up: each answer is a request of its own."""

    def __init__(self, client: Client, settings: GeminiSettings, opening: Opening) -> None:
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
        self._exchange: Exchange | None = None
        self._answer: StreamedAnswer | None = None
        self._request: asyncio.Task[None] | None = None

    @property
    def resume(self) -> str | None:
        """Nothing: the history is here, not at the provider's."""
        return None

    def events(self) -> AsyncIterator[Event]:
        """Everything that comes, in order, up to `Closed`."""
        return aiter(self._events)

    async def send_text(self, text: str) -> None:
        """A message of the user; it waits for an answer, or for calls, that are under way."""
        self._waiting.append(_words(text))
        self._wanted = True
        self._go_on()

    async def send_audio(self, pcm: bytes) -> None:
        """Nothing: a conversation in text has no microphone."""

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Answers to calls; with the last of them the model goes on, or with what the user says next."""
        if self._exchange is None:
            return
        for result in results:
            self._exchange.take(result)
        if self._exchange.complete:
            self._history.append(self._exchange.content())
            self._exchange = None
            self._wanted = self._wanted or respond
            self._go_on()

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Something the model should know, in its next request or in one of its own."""
        self._waiting.append(_words(text))
        self._wanted = self._wanted or respond
        self._go_on()

    async def interrupt(self) -> None:
        """Close the stream; what was said of the answer stays in the history."""
        request = self._request
        if request is None or self._answer is None:
            return
        answer, self._answer = self._answer, None
        request.cancel()
        await asyncio.wait((request,))
        self._remember(answer, whole=False)
        self._events.put_nowait(Interrupted())
        self._go_on()

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Nothing: what is written is read."""

    async def close(self) -> None:
        """Hang up."""
        self._events.close(Closed())
        if self._request is not None:
            self._request.cancel()
            await asyncio.wait((self._request,))

    def _go_on(self) -> None:
        if self._events.closed or self._answer is not None or self._exchange is not None:
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
        except Exception as error:  # noqa: BLE001 - whatever fails here is a trouble of the provider's
            trouble = troubles.of_exception(error)
        if self._answer is not answer:
            return  # It was interrupted in the moment in which it ended.
        self._answer = None
        for event in self._ended(answer, trouble):
            self._events.put_nowait(event)
        self._go_on()

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
        """What the end of an answer means, for the history and for whoever listens."""
        yield from answer.usage()
        code, detail = _judge(answer, trouble)
        if code:
            if answer.blocked:
                # A question that is refused would be refused again with every further one.
                self._history.pop()
            self._remember(answer, whole=False)
            yield Trouble(code, detail)
        elif answer.calls and answer.finish != "MAX_TOKENS":
            self._remember(answer, whole=True)
            self._exchange = Exchange(answer.calls, self._names)
            yield ToolCalls(answer.tool_calls(self._names))
        else:
            self._remember(answer, whole=not answer.calls)
            yield TurnComplete()

    def _remember(self, answer: StreamedAnswer, *, whole: bool) -> None:
        if content := answer.content(whole=whole):
            self._history.append(content)


def _judge(answer: StreamedAnswer, trouble: TransportError | None) -> tuple[str, str]:
    """The code of what went wrong, if something did, and a sentence about it."""
    if trouble is not None:
        wait = f"; it may be tried again in {trouble.retry_after:g} s" if trouble.retry_after else ""
        return trouble.code, trouble.detail + wait
    if answer.blocked:
        return "content_refused", f"the question was blocked: {answer.blocked}"
    if not answer.finish:
        return "network", "the answer broke off before its end"
    if answer.finish == "MAX_TOKENS" and not answer.said:
        return "server_error", "the model reached its limit before it said a word"
    return troubles.FINISH_REASONS.get(answer.finish, ""), f"the answer ended with {answer.finish}"


def _config(opening: Opening) -> GenerateContentConfig:
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
        detail = f"the SDK does not take what the session begins with: {error}"
        raise TransportError("invalid_request_error", detail[: troubles.LONGEST_DETAIL]) from None


def _words(text: str, role: str = "user") -> Content:
    return Content(role=role, parts=[Part(text=text)])
