"""What a deployment may say about the transport, in `[transports.openai]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jackfield.settings import SettingsError

from jackfield_openai.local_servers import USUAL, loopback

VOICE_PATHS = ("websocket", "webrtc", "off")
TURN_DETECTIONS = ("server_vad", "semantic_vad")
NOISE_REDUCTIONS = ("near_field", "far_field")


@dataclass(frozen=True, slots=True)
class Options:
    """The settings, with what holds when nothing is said."""

    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key."""

    base_url: str | None = None
    """Where the API is; any server that speaks chat completions will do for text."""

    text_model: str = "gpt-6.1-terra"
    voice_model: str = "gpt-realtime-2.1"
    transcription_model: str = "gpt-transcribe"
    voice_name: str = "marin"
    """The voice that speaks, unless a session asks for another."""

    voice: str = "websocket"
    """How voice travels: through us, or from the browser itself; `off` where the server has text only."""

    strict: bool = False
    """Have OpenAI hold the model to the schema of each tool, in text."""

    turn_detection: str = "server_vad"
    noise_reduction: str | None = None
    temperature: float | None = None
    """For text; some models refuse to be given one."""

    connect_timeout: float = 15.0
    request_timeout: float = 120.0
    """Seconds without a sign of life after which a request in text is given up."""

    retries: int = 1
    """How often the SDK repeats a request in text that could not be begun."""

    renew_after_minutes: float = 55.0
    """When a voice session, which lives for 60 minutes, is announced to end."""

    local_servers: Sequence[str] = USUAL
    """Where `provider = "auto"` looks for a server on this machine; empty: nowhere."""


class _Kind(NamedTuple):
    fits: Callable[[Any], bool]
    wanted: str


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _one_of(*names: str) -> _Kind:
    return _Kind(lambda value: value in names, "one of " + ", ".join(names))


_TEXT = _Kind(_text, "a text")
_SECONDS = _Kind(lambda value: _number(value) and value > 0, "a number of seconds above 0")

_KINDS: dict[str, _Kind] = {
    "api_key_env": _TEXT,
    "base_url": _Kind(lambda value: _text(value) and value.startswith(("http://", "https://")), "a URL"),
    "text_model": _TEXT,
    "voice_model": _TEXT,
    "transcription_model": _TEXT,
    "voice_name": _TEXT,
    "voice": _one_of(*VOICE_PATHS),
    "strict": _Kind(lambda value: isinstance(value, bool), "true or false"),
    "turn_detection": _one_of(*TURN_DETECTIONS),
    "noise_reduction": _one_of(*NOISE_REDUCTIONS),
    "temperature": _Kind(lambda value: _number(value) and 0 <= value <= 2, "a number from 0 to 2"),
    "connect_timeout": _SECONDS,
    "request_timeout": _SECONDS,
    "retries": _Kind(
        lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10,
        "a whole number from 0 to 10",
    ),
    "renew_after_minutes": _Kind(
        lambda value: _number(value) and 0 < value < 60, "a number of minutes between 0 and 60"
    ),
    "local_servers": _Kind(
        lambda value: (
            isinstance(value, list) and all(isinstance(each, str) and loopback(each) for each in value)
        ),
        'a list of loopback addresses with ports, such as ["127.0.0.1:11434"]',
    ),
}


def options(settings: Mapping[str, Any]) -> Options:
    """The settings as a whole, refused when one is misspelt or of the wrong kind."""
    known = [each.name for each in fields(Options)]
    for name, value in settings.items():
        if name not in known:
            close = get_close_matches(name, known, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
            raise SettingsError(f"[transports.openai] has no setting {name!r}; {meant}")
        kind = _KINDS[name]
        if not kind.fits(value):
            raise SettingsError(f"[transports.openai] {name} is {kind.wanted}, not {value!r}")
    return Options(**settings)


def is_loopback(base_url: str | None) -> bool:
    """Whether an address leads to a server on this machine."""
    host = urlsplit(base_url or "").hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
