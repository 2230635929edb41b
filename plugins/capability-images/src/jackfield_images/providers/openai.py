"""Images from OpenAI, or from a compatible server."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Sequence
from typing import Any

import openai
from jackfield import ToolError
from jackfield_capability_types.images import ImageOrder

from jackfield_images import tool_errors
from jackfield_images.providers import GeneratedImage, full_prompt
from jackfield_images.settings import ProviderConfig

_log = logging.getLogger("jackfield.images")

_SIZES = {"square": "1024x1024", "landscape": "1536x1024", "portrait": "1024x1536"}
_QUALITIES: dict[str, Any] = {"draft": "low", "standard": "medium", "high": "high"}


class OpenAIImages:
    """The images endpoint of OpenAI's API."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        # No automatic retries: a retry may be billed, and the caller could not report it.
        self._client = openai.AsyncOpenAI(
            api_key=config.key or "none",
            base_url=config.base_url,
            max_retries=0,
            timeout=config.timeout,
        )

    async def draw(self, order: ImageOrder) -> Sequence[GeneratedImage]:
        """Generate the images of an order in one request."""
        prompt = full_prompt(order)
        try:
            answer = await self._client.images.generate(
                model=self._config.model,
                prompt=prompt,
                n=order.count,
                size=_SIZES[order.shape],
                quality=_QUALITIES[order.quality],
            )
        except openai.OpenAIError as error:
            raise self._refusal(error) from None
        except ValueError as error:
            _log.error("openai: the response is not JSON: %s", error)
            raise tool_errors.unusable() from None
        return [self._drawing(each, prompt) for each in answer.data or ()] or self._nothing()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _drawing(self, image: Any, prompt: str) -> GeneratedImage:
        encoded = image.b64_json or ""
        # Four characters are three bytes, so the size is known before decoding.
        if not encoded or len(encoded) * 3 // 4 > self._config.max_bytes + 3:
            _log.error("openai: an image of %d characters of base64 cannot be used", len(encoded))
            raise tool_errors.unusable()
        try:
            return GeneratedImage(base64.b64decode(encoded, validate=True), image.revised_prompt or prompt)
        except binascii.Error as error:
            _log.error("openai: an image is not base64: %s", error)
            raise tool_errors.unusable() from None

    def _nothing(self) -> Sequence[GeneratedImage]:
        _log.error("openai: the response contains no image")
        raise tool_errors.unusable()

    def _refusal(self, error: openai.OpenAIError) -> ToolError:
        if isinstance(error, openai.APITimeoutError):
            return tool_errors.no_answer(self._config.timeout)
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__
            return (
                tool_errors.from_transport(cause) if isinstance(cause, Exception) else None
            ) or tool_errors.lost()
        if not isinstance(error, openai.APIStatusError):
            _log.error("openai: %s", type(error).__name__)
            return tool_errors.unusable()
        status, code = error.status_code, str(error.code or "")
        # The message is not logged, because for a wrong key it repeats part of the key.
        _log.warning("openai: status %d, code %s, request %s", status, code or "-", error.request_id)
        wait = tool_errors.retry_after(error.response.headers)
        return tool_errors.for_status(status, code, self._config.model, wait)
