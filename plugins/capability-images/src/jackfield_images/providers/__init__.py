"""Image providers: the interface, and one module for each provider, imported when it is configured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from jackfield_capability_types.images import ImageOrder

from jackfield_images.settings import ProviderConfig


class GeneratedImage(NamedTuple):
    """A picture as it came, and the words it was made from as far as the provider says so."""

    content: bytes
    prompt: str


class ImageProvider(Protocol):
    """A service that draws; what it cannot or will not do it raises as `ToolError`."""

    async def draw(self, order: ImageOrder) -> Sequence[GeneratedImage]:
        """The pictures of an order; fewer than asked when the provider left some out, never none."""

    async def close(self) -> None:
        """Let go of connections."""


def full_prompt(order: ImageOrder) -> str:
    """The order in words; not every model knows a field for what is unwanted."""
    return f"{order.prompt}\n\nAvoid: {order.avoid}" if order.avoid else order.prompt


def connect(config: ProviderConfig) -> ImageProvider:
    """The configured provider; importing its package takes a moment."""
    if config.provider == "openai":
        from jackfield_images.providers.openai import OpenAIImages

        return OpenAIImages(config)
    from jackfield_images.providers.gemini import GeminiImages

    return GeminiImages(config)
