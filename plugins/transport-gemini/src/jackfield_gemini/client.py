"""The SDK's client, made when the first session is opened: importing the SDK takes more than a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackfield_gemini.settings import GeminiSettings

if TYPE_CHECKING:
    import ssl

    from google.genai import Client

MESSAGE_LIMIT = 8 * 1024 * 1024
"""The largest message of a voice session; a second of speech has about 64 kB."""


def make_client(settings: GeminiSettings, trusted: ssl.SSLContext | None) -> Client:
    """A client of the Gemini API with this deployment's key, address and certificates."""
    from google.genai import Client
    from google.genai.types import HttpOptions

    # The SDK hands each of these to whichever of its two clients knows it, HTTP or WebSocket.
    shared: dict[str, Any] = {
        "max_size": MESSAGE_LIMIT,
        # Speech in base64 hardly gets smaller, and deflating it costs more than the rest of a frame.
        "compression": None,
        "open_timeout": settings.connect_timeout,
        "close_timeout": 2.0,
    }
    if trusted:
        shared |= {"ssl": trusted, "verify": trusted}
    http = HttpOptions(
        base_url=settings.base_url.rstrip("/") if settings.base_url else None,
        api_version=settings.api_version,
        timeout=int(settings.request_timeout * 1000),
        async_client_args=shared,
    )
    # Said outright, so that variables meant for other programs do not turn this into a Vertex AI client.
    return Client(api_key=settings.key(), vertexai=False, http_options=http)
