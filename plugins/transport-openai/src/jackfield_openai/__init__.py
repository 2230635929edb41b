"""OpenAI transport: chat completions (also on compatible servers), and Realtime over WebSocket and WebRTC."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import (
    Detected,
    Detector,
    SchemaAdapterOffer,
    TransportOffer,
    Undetected,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackfield.offers import Adapt, Adapted
    from jackfield.transport.protocol import Transport

    from jackfield_openai.settings import OpenAISettings

__all__ = ["jackfield_schema_adapters", "jackfield_transports"]

KEY_RANK = 100
"""Rank for `provider = "auto"`: an OpenAI key comes before a Gemini key (110)."""
SERVER_RANK = 200
"""A server on this machine comes after every key, and before the local agent (300 and later)."""


@hookimpl
def jackfield_transports() -> list[TransportOffer]:
    """Offer the transport under the name `openai`."""
    from jackfield_openai.settings import OpenAISettings

    detectors = (Detector(KEY_RANK, _detect_key), Detector(SERVER_RANK, _detect_server))
    return [TransportOffer("openai", _create, _unavailable, detectors, OpenAISettings)]


@hookimpl
def jackfield_schema_adapters() -> list[SchemaAdapterOffer]:
    """Offer the tool declaration formats of OpenAI's APIs."""
    # Their code is imported when a build calls them; a host asks for the offers, but never calls them.
    return [
        SchemaAdapterOffer("openai-chat", partial(_adapt, "chat")),
        SchemaAdapterOffer("openai-strict", partial(_adapt, "strict")),
        SchemaAdapterOffer("openai-realtime", partial(_adapt, "realtime")),
    ]


def _adapt(form: str, tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    from jackfield_openai import schemas

    adapt: Adapt = getattr(schemas, form)
    return adapt(tool_id, description, parameters)


def _unavailable(settings: OpenAISettings) -> str | None:
    from jackfield_openai.client import without_key

    return without_key(settings)


def _detect_key(settings: OpenAISettings) -> Detected | Undetected:
    from jackfield_openai.client import without_key

    if without_key(settings):
        return Undetected(f"set {settings.api_key_env} to use OpenAI")
    if settings.base_url:
        return Detected("[transports.openai] base_url is set")
    return Detected(f"{settings.api_key_env} is set")


def _detect_server(settings: OpenAISettings) -> Detected | Undetected:
    from jackfield_openai.local_servers import addresses, find

    servers = find(addresses(settings.local_servers), settings.text_model)
    for server in servers:
        if server.model:
            return Detected(
                f"{server.product} at {server.address} offers {server.model}",
                {"base_url": server.base_url, "text_model": server.model, "voice": "off"},
            )
    if servers:
        found = " and ".join(f"{each.product} at {each.address}" for each in servers)
        return Undetected(f"add a model that can call tools to {found}")
    return Undetected(
        "start a local server (Ollama, LM Studio, llama.cpp, vLLM) with a model that can call tools"
    )


def _create(settings: OpenAISettings) -> Transport:
    from jackfield_openai.transport import BrowserOpenAITransport, OpenAITransport

    return BrowserOpenAITransport(settings) if settings.voice == "webrtc" else OpenAITransport(settings)
