"""Texts that a model writes outside the conversation, over a separate connection and without tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from jackfield.contract.context import ModelAnswer, ModelRequest
from jackfield.transport.events import Closed, ProviderError, TextDelta, ToolCalls, TurnComplete, Usage
from jackfield.transport.protocol import ConnectionConfig, Transport, TransportError, Utterance

_log = logging.getLogger(__name__)

MAX_RUNNING = 4
"""How many texts the calls of a session may request at once; further requests get no text."""

CHARACTERS_PER_TOKEN = 16
"""More than any tokenizer averages; if a provider ignores the token limit, its text is cut at this length."""


async def complete(transport: Transport, request: ModelRequest) -> tuple[ModelAnswer, Usage]:
    """Return the model's text and the tokens that it used; raises `TransportError` or `TimeoutError`."""
    *earlier, (_, text) = request.messages
    config = ConnectionConfig(
        "text",
        request.instructions,
        {},
        history=tuple(Utterance(*each) for each in earlier),
        answer_tokens=request.max_tokens,
        purpose="summary",
    )
    async with asyncio.timeout(request.seconds):
        connection = await transport.connect(config)
        try:
            await connection.send_text(text)
            answer, used = "", Usage(0, 0)
            most = request.max_tokens * CHARACTERS_PER_TOKEN
            async for event in connection.events():
                if isinstance(event, TextDelta):
                    answer += event.text
                    if most and len(answer) > most:
                        return ModelAnswer(answer[:most].strip(), truncated=True), used
                elif isinstance(event, Usage):
                    used = Usage(*map(sum, zip(used, event, strict=True)))
                elif isinstance(event, TurnComplete) and answer.strip():
                    is_cut = 0 < request.max_tokens <= used.output_tokens
                    return ModelAnswer(answer.strip(), is_cut), used
                elif isinstance(event, ProviderError | Closed):
                    raise TransportError(event.code or "server_error", event.detail)
                elif isinstance(event, TurnComplete | ToolCalls):
                    break
            raise TransportError("server_error", "the model wrote no text")
        finally:
            await connection.close()


class Completions:
    """The texts that the running calls of one session request from its model."""

    def __init__(self, transport: Transport, count: Callable[[Usage], Awaitable[None]]) -> None:
        """`count` is called with the token usage of each text."""
        self._transport = transport
        self._count = count
        self._running = 0

    async def ask(self, request: ModelRequest, call_id: str | None = None) -> ModelAnswer | None:  # noqa: ARG002
        """Return the model's text for one of the calls; None if that fails or too many requests run."""
        if self._running >= MAX_RUNNING:
            return None
        self._running += 1
        try:
            answer, used = await complete(self._transport, request)
        except (TransportError, TimeoutError) as error:
            _log.warning("the model wrote no text for a call: %s", str(error) or "it took too long")
            return None
        finally:
            self._running -= 1
        await self._count(used)
        return answer
