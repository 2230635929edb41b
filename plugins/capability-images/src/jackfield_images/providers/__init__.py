"""The services that draw; each is a module, imported when it is the one that is configured."""

from __future__ import annotations

from jackfield_images.options import Options
from jackfield_images.providers.drawing import Provider


def connect(options: Options) -> Provider:
    """The configured provider; importing its package takes a moment."""
    if options.provider == "openai":
        from jackfield_images.providers.openai import OpenAIImages

        return OpenAIImages(options)
    from jackfield_images.providers.gemini import GeminiImages

    return GeminiImages(options)
