"""The settings of the transport: `[transports.openai]`."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from jackfield.settings import (
    EnvironmentVariable,
    Format,
    Ge,
    Gt,
    Help,
    HttpUrl,
    Le,
    Lt,
    NonEmpty,
    Seconds,
    Unit,
)

DEFAULT_TEXT_MODEL = "gpt-6.1-terra"

USUAL_SERVERS = ("127.0.0.1:11434", "127.0.0.1:1234", "127.0.0.1:8080", "127.0.0.1:8000")
"""The default addresses of Ollama, LM Studio, llama.cpp and vLLM."""


def is_loopback_address(address: str) -> bool:
    """Return whether this is HOST:PORT with a numeric loopback address, which no resolver can redirect."""
    host, separator, port = address.rpartition(":")
    try:
        return bool(separator) and ip_address(host.strip("[]")).is_loopback and 0 < int(port) < 65536
    except ValueError:
        return False


def is_loopback_url(base_url: str | None) -> bool:
    """Return whether a URL leads to a server on this machine."""
    host = urlsplit(base_url or "").hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _local_server(address: str) -> str:
    if not is_loopback_address(address):
        raise ValueError
    return address


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """`[transports.openai]`"""

    api_key_env: Annotated[
        EnvironmentVariable,
        Help("The environment variable that holds the key; optional with `base_url`."),
    ] = "OPENAI_API_KEY"
    base_url: Annotated[
        HttpUrl | None,
        Help(
            "A different server that speaks chat completions, such as Gemini's compatible one or "
            "a local one.",
            default="OpenAI's",
        ),
    ] = None
    text_model: Annotated[NonEmpty | None, Help("The model for text.", default=f"`{DEFAULT_TEXT_MODEL}`")] = (
        None
    )
    voice_model: Annotated[NonEmpty, Help("The model for voice.")] = "gpt-realtime-2.1"
    transcription_model: Annotated[NonEmpty, Help("The model that transcribes what the user says.")] = (
        "gpt-transcribe"
    )
    voice_name: Annotated[NonEmpty, Help("The voice, unless a session specifies a different one.")] = "marin"
    voice: Annotated[
        Literal["websocket", "webrtc", "off"],
        Help(
            "How audio travels: `websocket` goes through the host; with `webrtc` browsers "
            "connect to OpenAI directly while the host runs the tools; `off` if the server "
            "supports only text."
        ),
    ] = "websocket"
    strict: Annotated[bool, Help("Let OpenAI enforce each tool's schema, in text.")] = False
    turn_detection: Annotated[
        Literal["server_vad", "semantic_vad"], Help("How OpenAI detects the end of a turn.")
    ] = "server_vad"
    noise_reduction: Annotated[
        Literal["near_field", "far_field"] | None,
        Help("Noise reduction for a microphone near the mouth or elsewhere in the room.", default="off"),
    ] = None
    temperature: Annotated[
        Annotated[float, Ge(0), Le(2)] | None,
        Help("The temperature for text; some models do not accept one.", default="the model's"),
    ] = None
    connect_timeout: Annotated[Seconds, Help("How long opening a connection may take.")] = 15.0
    request_timeout: Annotated[
        Seconds, Help("How long a text request waits for the next data before it fails.")
    ] = 120.0
    retries: Annotated[
        int, Ge(0), Le(10), Help("How often the SDK retries a text request that could not be started.")
    ] = 1
    renew_after_minutes: Annotated[
        float,
        Gt(0),
        Lt(60),
        Unit("minutes"),
        Help("When a voice session, which lasts at most 60 minutes, is renewed."),
    ] = 55.0
    local_servers: Annotated[
        tuple[
            Annotated[
                str,
                Format('a loopback address with a port, such as "127.0.0.1:11434"', _local_server),
            ],
            ...,
        ],
        Help(
            'Where `provider = "auto"` looks for a server on this machine: loopback addresses only, `[]` for '
            "none. The `JACKFIELD_LOCAL_SERVERS` environment variable (a comma-separated list, or `none`) "
            "overrides it."
        ),
    ] = USUAL_SERVERS
