"""A request for a completion, in a form that the server at hand accepts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from jackfield_openai.settings import DEFAULT_TEXT_MODEL, OpenAISettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class Requests:
    """What all requests of a transport have in common, and what its server turned out not to know."""

    def __init__(self, settings: OpenAISettings) -> None:
        self._fixed: dict[str, Any] = {"model": settings.text_model or DEFAULT_TEXT_MODEL, "stream": True}
        if settings.temperature is not None:
            self._fixed["temperature"] = settings.temperature
        self._counts_tokens = True
        # OpenAI's reasoning models take only the new name; many compatible servers know only the old one.
        self._limits = ["max_completion_tokens", "max_tokens"]
        if settings.base_url:
            self._limits.reverse()

    @asynccontextmanager
    async def stream(
        self, client: AsyncOpenAI, messages: Sequence[Any], tools: Sequence[Any], answer_tokens: int = 0
    ) -> AsyncIterator[AsyncIterator[Any]]:
        """The chunks of an answer; `answer_tokens` limits its length."""
        opened = await self._begin(client, messages, tools, answer_tokens)
        async with opened as chunks:
            yield chunks

    async def _begin(
        self, client: AsyncOpenAI, messages: Sequence[Any], tools: Sequence[Any], answer_tokens: int
    ) -> Any:
        """Open the stream; what the server refuses is left out or said in another way from now on."""
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
                return await client.chat.completions.create(**asked)
            except (BadRequestError, UnprocessableEntityError) as error:
                if not self._learn(f"{error.message} {error.param}", asked):
                    raise

    def _learn(self, refusal: str, asked: Mapping[str, Any]) -> bool:
        """Whether a refusal names something that can be left out or said in another way."""
        if "stream_options" in asked and "stream_options" in refusal:
            self._counts_tokens = False
            return True
        if len(self._limits) > 1 and self._limits[0] in asked and self._limits[0] in refusal:
            del self._limits[0]
            return True
        return False
