"""The services that draw; each is a module, imported when it is the one that is configured."""

from __future__ import annotations

from jackfield_images.providers.drawing import Provider
from jackfield_images.settings import ProviderConfig


def connect(config: ProviderConfig) -> Provider:
    """The configured provider; importing its package takes a moment."""
    if config.provider == "openai":
        from jackfield_images.providers.openai import OpenAIImages

        return OpenAIImages(config)
    from jackfield_images.providers.gemini import GeminiImages

    return GeminiImages(config)
