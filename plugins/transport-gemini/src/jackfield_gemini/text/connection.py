"""One conversation in text: its history, and the request that is under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from google.genai.types import AutomaticFunctionCallingConfig, Content, GenerateContentConfig, Part
from jackfield.transport.events import Closed, Event, Interrupted, ToolCalls, Trouble, TurnComplete
from jackfield.transport.protocol import Opening, ToolResult, TransportError
from jackfield.transport.queue import EventQueue
from jackfield_schemas.names import ToolNames

from jackfield_gemini import troubles
from jackfield_gemini.options import Options
from jackfield_gemini.text.answer import StreamedAnswer
from jackfield_gemini.text.exchange import Exchange

if TYPE_CHECKING:
    from google.genai import Client


class TextConnection:
    """A line that stands as long as nobody hangs up: each answer is a request of its own."""

    def __init__(self, client: Client, options: Options, opening: Opening) -> None:
        self._client = client
        self._model = options.text_model
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
