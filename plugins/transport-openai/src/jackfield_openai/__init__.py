"""The way to OpenAI: chat completions, also of compatible servers, and Realtime over WebSocket and WebRTC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import (
    Detected,
    Detector,
    PluginSettings,
    SchemaAdapterOffer,
    TransportOffer,
    Undetected,
)

if TYPE_CHECKING:
    from jackfield.transport.protocol import Transport

__all__ = ["jackfield_schema_adapters", "jackfield_transports"]

KEY_RANK = 100
"""Of `provider = "auto"`: a key for OpenAI comes before one for Gemini (110)."""
SERVER_RANK = 200
"""A server on this machine comes after every key, and before the agent in this process (300 and later)."""


@hookimpl
def jackfield_transports() -> list[TransportOffer]:
    """Offer the transport under the name `openai`."""
    return [
        TransportOffer(
            "openai",
            _create,
            _unavailable,
            (Detector(KEY_RANK, _detect_key), Detector(SERVER_RANK, _detect_server)),
        )
    ]


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


def _detect_key(settings: PluginSettings) -> Detected | Undetected:
    from jackfield_openai.client import without_key
    from jackfield_openai.options import options

    chosen = options(settings)
    if without_key(chosen):
        return Undetected(f"set {chosen.api_key_env} to use OpenAI")
    if chosen.base_url:
        return Detected("[transports.openai] base_url is set")
    return Detected(f"{chosen.api_key_env} is set")


def _detect_server(settings: PluginSettings) -> Detected | Undetected:
    from jackfield_openai.local_servers import addresses, find
    from jackfield_openai.options import options

    chosen = options(settings)
    servers = find(addresses(chosen.local_servers), settings.get("text_model"))
    for server in servers:
        if server.model:
            return Detected(
                f"{server.product} at {server.address} offers {server.model}",
                {"base_url": server.base_url, "text_model": server.model, "voice": "off"},
            )
    if servers:
        found = " and ".join(f"{each.product} at {each.address}" for each in servers)
        return Undetected(f"give {found} a model that can call tools")
    return Undetected(
        "start a local server (Ollama, LM Studio, llama.cpp, vLLM) with a model that can call tools"
    )


def _create(settings: PluginSettings) -> Transport:
    from jackfield_openai.options import options
    from jackfield_openai.transport import BrowserOpenAITransport, OpenAITransport

    chosen = options(settings)
    return BrowserOpenAITransport(chosen) if chosen.voice == "webrtc" else OpenAITransport(chosen)
