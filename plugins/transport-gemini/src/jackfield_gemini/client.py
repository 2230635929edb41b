"""Google's SDK and its client, loaded with the first session: the import takes more than a second."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from jackfield_gemini.settings import GeminiSettings

if TYPE_CHECKING:
    import ssl

    from google.genai import Client

MESSAGE_LIMIT = 8 * 1024 * 1024
"""The maximum size of a message in a voice session; a second of speech has about 64 kB."""


def load_sdk() -> None:
    """Import the SDK and build its larger models; call it in a thread, because it is slow."""
    with warnings.catch_warnings():
        # Python warns about an escape sequence in its sources whenever it compiles them.
        for kind in (DeprecationWarning, SyntaxWarning):
            warnings.simplefilter("ignore", kind)
        from google.genai import types

    for model in (
        types.LiveConnectConfig,
        types.LiveConnectParameters,
        types.LiveServerMessage,
        types.LiveClientContent,
        types.LiveClientToolResponse,
        types.GenerateContentConfig,
        types.GenerateContentResponse,
    ):
        model.model_rebuild()


def make_client(settings: GeminiSettings, trusted: ssl.SSLContext | None) -> Client:
    """Return a client for the Gemini API with this deployment's key, address and certificates."""
    from google.genai import Client
    from google.genai.types import HttpOptions

    # The SDK passes each of these to the HTTP or WebSocket client that supports it.
    shared: dict[str, Any] = {
        "max_size": MESSAGE_LIMIT,
        # Speech in base64 hardly compresses, and compression costs more than the rest of a frame.
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
    # Explicit, so that variables of other programs do not turn this into a Vertex AI client.
    return Client(api_key=settings.key(), vertexai=False, http_options=http)
