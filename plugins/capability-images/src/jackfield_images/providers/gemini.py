"""Images from Google: Gemini image models and Imagen."""

from __future__ import annotations

import asyncio
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from google import genai
from google.genai import errors, types
from jackfield import ToolError
from jackfield_capability_types.images import ImageOrder

from jackfield_images import tool_errors
from jackfield_images.providers import GeneratedImage, full_prompt
from jackfield_images.settings import ProviderConfig

_log = logging.getLogger("jackfield.images")

_RATIOS = {"square": "1:1", "landscape": "3:2", "portrait": "2:3"}
_IMAGEN_RATIOS = {"square": "1:1", "landscape": "4:3", "portrait": "3:4"}
_SIZES = {"draft": "1K", "standard": "1K", "high": "2K"}
_UNWILLING = re.compile(r"SAFETY|PROHIBITED|BLOCKLIST|SPII|RECITATION|JAILBREAK|MODEL_ARMOR")


class GeminiImages:
    """The Gemini API; models named imagen-* run on Vertex AI."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._is_imagen = config.model.startswith("imagen-")
        self._client = genai.Client(
            # The package offers generate_images only on Vertex AI, where an API key is enough.
            vertexai=self._is_imagen,
            api_key=config.key or "none",
            http_options=types.HttpOptions(
                base_url=config.base_url,
                timeout=int(config.timeout * 1000),
                # A retry may be billed, and the caller could not report it.
                retry_options=types.HttpRetryOptions(attempts=1),
            ),
        )

    async def draw(self, order: ImageOrder) -> Sequence[GeneratedImage]:
        """Generate the images of an order."""
        if self._is_imagen:
            return await self._answered(self._by_imagen(order))
        # These models generate one image per request.
        requests = (self._answered(self._by_gemini(order)) for _ in range(order.count))
        answers = await asyncio.gather(*requests, return_exceptions=True)
        drawings = [drawing for each in answers if not isinstance(each, BaseException) for drawing in each]
        failures = [each for each in answers if isinstance(each, BaseException)]
        if failures and not drawings:
            raise failures[0]
        return drawings

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aio.aclose()
        self._client.close()

    async def _answered(self, request: Any) -> list[GeneratedImage]:
        try:
            drawings: list[GeneratedImage] = await request
        except errors.APIError as error:
            raise self._refusal(error) from None
        except ToolError:
            raise
        except Exception as error:
            if isinstance(error, ValueError):
                # The response is not JSON or has an unexpected form.
                _log.error("gemini: the answer cannot be read: %s", type(error).__name__)
                raise tool_errors.unusable() from None
            if refusal := tool_errors.from_transport(error):
                raise refusal from None
            raise
        if not drawings:
            _log.error("gemini: the response contains no image")
            raise tool_errors.unusable()
        return drawings

    async def _by_gemini(self, order: ImageOrder) -> list[GeneratedImage]:
        prompt = full_prompt(order)
        config = types.GenerateContentConfig(
            response_modalities=["IMAGE"],
            image_config=types.ImageConfig(
                aspect_ratio=_RATIOS[order.shape], image_size=_SIZES[order.quality]
            ),
        )
        answer = await self._client.aio.models.generate_content(
            model=self._config.model, contents=prompt, config=config
        )
        drawings = [GeneratedImage(content, prompt) for content in _contents(answer)]
        reasons = list(_reasons(answer))
        if not drawings and any(_UNWILLING.search(reason) for reason in reasons):
            _log.warning("gemini: rejected: %s", ", ".join(reasons))
            raise tool_errors.unwilling()
        return drawings

    async def _by_imagen(self, order: ImageOrder) -> list[GeneratedImage]:
        prompt = full_prompt(order)
        config = types.GenerateImagesConfig(
            number_of_images=order.count,
            aspect_ratio=_IMAGEN_RATIOS[order.shape],
            image_size=_SIZES[order.quality],
            include_rai_reason=True,
        )
        with warnings.catch_warnings():
            # The package warns that these models are deprecated; our docs say so too.
            warnings.simplefilter("ignore")
            request = self._client.aio.models.generate_images(
                model=self._config.model, prompt=prompt, config=config
            )
        answer = await request
        made = answer.generated_images or []
        drawings = [
            GeneratedImage(each.image.image_bytes, each.enhanced_prompt or prompt)
            for each in made
            if each.image and each.image.image_bytes
        ]
        # This service rejects by returning no image.
        if not drawings and (not made or any(each.rai_filtered_reason for each in made)):
            raise tool_errors.unwilling()
        return drawings

    def _refusal(self, error: errors.APIError) -> ToolError:
        status, code = int(error.code or 500), str(error.status or "")
        details = list(_details(error))
        if any(each.get("reason") == "API_KEY_INVALID" for each in details):
            status = 401
        # The message is not logged, because it may repeat the prompt.
        _log.warning("gemini: status %d, code %s", status, code or "-")
        return tool_errors.for_status(status, code, self._config.model, _wait(error, details))


def _contents(answer: types.GenerateContentResponse) -> Iterator[bytes]:
    for candidate in answer.candidates or ():
        for part in (candidate.content.parts if candidate.content else None) or ():
            if part.inline_data and part.inline_data.data and not part.thought:
                yield part.inline_data.data


def _reasons(answer: types.GenerateContentResponse) -> Iterator[str]:
    """Yield the provider's reasons for a response without an image."""
    if answer.prompt_feedback and answer.prompt_feedback.block_reason:
        yield answer.prompt_feedback.block_reason.value
    for candidate in answer.candidates or ():
        if candidate.finish_reason:
            yield candidate.finish_reason.value


def _details(error: errors.APIError) -> Iterator[dict[str, Any]]:
    body = error.details if isinstance(error.details, dict) else {}
    inner = body.get("error", body)
    listed = inner.get("details", ()) if isinstance(inner, dict) else ()
    yield from (each for each in listed if isinstance(each, dict))


def _wait(error: errors.APIError, details: list[dict[str, Any]]) -> float | None:
    """Return the retry delay from the response body, or else from its header."""
    for each in details:
        if delay := re.fullmatch(r"(\d+(\.\d+)?)s", str(each.get("retryDelay", ""))):
            return float(delay[1])
    return tool_errors.retry_after(getattr(error.response, "headers", None) or {})
