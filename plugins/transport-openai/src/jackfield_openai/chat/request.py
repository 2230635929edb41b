"""A request for a completion, in a form that the server at hand accepts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from jackfield_openai.options import Options

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class Requests:
    """What all requests of a transport have in common, and what its server turned out not to know."""

    def __init__(self, options: Options) -> None:
        self._fixed: dict[str, Any] = {"model": options.text_model, "stream": True}
        if options.temperature is not None:
            self._fixed["temperature"] = options.temperature
        self._counts_tokens = True

    @asynccontextmanager
    async def stream(
        self, client: AsyncOpenAI, messages: Sequence[Any], tools: Sequence[Any]
    ) -> AsyncIterator[AsyncIterator[Any]]:
        """The chunks of an answer."""
        from openai import BadRequestError, UnprocessableEntityError

        try:
            opened = await self._begin(client, messages, tools)
        except (BadRequestError, UnprocessableEntityError) as error:
            if not (self._counts_tokens and "stream_options" in f"{error.message} {error.param}"):
                raise
            self._counts_tokens = False
            opened = await self._begin(client, messages, tools)
        async with opened as chunks:
            yield chunks

    async def _begin(self, client: AsyncOpenAI, messages: Sequence[Any], tools: Sequence[Any]) -> Any:
        asked = {**self._fixed, "messages": messages}
        if tools:
            asked["tools"] = tools
        if self._counts_tokens:
            asked["stream_options"] = {"include_usage": True}
        return await client.chat.completions.create(**asked)
