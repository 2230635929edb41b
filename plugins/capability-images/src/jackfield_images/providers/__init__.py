"""Image providers: the interface, and one module for each provider, imported when it is configured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from jackfield_capability_types.images import ImageOrder

from jackfield_images.settings import ProviderConfig


class GeneratedImage(NamedTuple):
    """An image from a provider, and the prompt that the provider used."""

    content: bytes
    prompt: str


class ImageProvider(Protocol):
    """An image provider; failures and refusals are raised as `ToolError`."""

    async def draw(self, order: ImageOrder) -> Sequence[GeneratedImage]:
        """Generate the images of an order: at least one, possibly fewer than ordered."""

    async def close(self) -> None:
        """Close the connections."""


def full_prompt(order: ImageOrder) -> str:
    """Return the prompt with unwanted things appended, because not every model has a field for them."""
    return f"{order.prompt}\n\nAvoid: {order.avoid}" if order.avoid else order.prompt


def connect(config: ProviderConfig) -> ImageProvider:
    """Create the configured provider; importing its package takes a while."""
    if config.provider == "openai":
        from jackfield_images.providers.openai import OpenAIImages

        return OpenAIImages(config)
    from jackfield_images.providers.gemini import GeminiImages

    return GeminiImages(config)
