"""The way to OpenAI: chat completions, also of compatible servers, and Realtime over WebSocket and WebRTC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import PluginSettings, SchemaAdapterOffer, TransportOffer

if TYPE_CHECKING:
    from jackfield.transport.protocol import Transport

__all__ = ["jackfield_schema_adapters", "jackfield_transports"]


@hookimpl
def jackfield_transports() -> list[TransportOffer]:
    """Offer the transport under the name `openai`."""
    return [TransportOffer("openai", _create, _unavailable)]


@hookimpl
def jackfield_schema_adapters() -> list[SchemaAdapterOffer]:
    """Offer the forms in which OpenAI's APIs take a tool."""
    from jackfield_openai import schemas

    return [
        SchemaAdapterOffer("openai-chat", schemas.chat),
        SchemaAdapterOffer("openai-strict", schemas.strict),
        SchemaAdapterOffer("openai-realtime", schemas.realtime),
    ]


def _unavailable(settings: PluginSettings) -> str | None:
    from jackfield_openai.client import without_key
    from jackfield_openai.options import options

    return without_key(options(settings))


def _create(settings: PluginSettings) -> Transport:
    from jackfield_openai.options import options
    from jackfield_openai.transport import BrowserOpenAITransport, OpenAITransport

    chosen = options(settings)
    return BrowserOpenAITransport(chosen) if chosen.voice == "webrtc" else OpenAITransport(chosen)
