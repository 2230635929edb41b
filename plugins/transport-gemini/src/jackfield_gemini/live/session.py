"""A Live session: its configuration, and its messages on the socket."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from jackfield.transport.protocol import ConnectionConfig, TransportError

from jackfield_gemini.errors import MAX_DETAIL
from jackfield_gemini.settings import GeminiSettings

if TYPE_CHECKING:
    from google.genai.live import AsyncSession
    from google.genai.types import LiveConnectConfig


def live_config(opening: ConnectionConfig, settings: GeminiSettings) -> LiveConnectConfig:
    """Return the configuration for `client.aio.live.connect`; raises `TransportError` if it is rejected."""
    from google.genai.types import LiveConnectConfig

    try:
        return LiveConnectConfig.model_validate(_fields(opening, settings))
    except ValueError as error:
        detail = f"the SDK rejects the session's configuration: {error}"
        raise TransportError("invalid_request_error", detail[:MAX_DETAIL]) from None


def _fields(opening: ConnectionConfig, settings: GeminiSettings) -> dict[str, Any]:
    config: dict[str, Any] = {
        "response_modalities": ["AUDIO"],
        "session_resumption": {"handle": opening.resume} if opening.resume else {},
        # Without it, a session with audio ends after 15 minutes.
        "context_window_compression": {"sliding_window": {}},
        "realtime_input_config": {
            "automatic_activity_detection": {"silence_duration_ms": opening.voice.silence_ms}
        },
    }
    if opening.instructions:
        config["system_instruction"] = opening.instructions
    if opening.answer_tokens:
        config["max_output_tokens"] = opening.answer_tokens
    if tools := _tools(opening, settings):
        config["tools"] = tools
    if speech := _speech(opening, settings):
        config["speech_config"] = speech
    if opening.voice.transcribe:
        config |= {"input_audio_transcription": {}, "output_audio_transcription": {}}
    if past_turns(opening):
        config["history_config"] = {"initial_history_in_client_content": True}
    return config


def past_turns(opening: ConnectionConfig) -> list[tuple[str, str]]:
    """Return the history as roles and texts; empty for a resumed session."""
    if opening.resume:
        return []
    return [
        ("user" if said.speaker == "user" else "model", said.text) for said in opening.history if said.text
    ]


def _tools(opening: ConnectionConfig, settings: GeminiSettings) -> list[dict[str, Any]]:
    # Models differ in whether they wait for their calls, so each declaration says so.
    behavior = settings.calls.upper()
    declared = [{"behavior": behavior, **each} for each in opening.declarations.values()]
    return [{"function_declarations": declared}] if declared else []


def _speech(opening: ConnectionConfig, settings: GeminiSettings) -> dict[str, Any]:
    speech: dict[str, Any] = {}
    if voice := opening.voice.voice or settings.voice:
        speech["voice_config"] = {"prebuilt_voice_config": {"voice_name": voice}}
    if language := opening.voice.language or settings.language:
        speech["language_code"] = language
    return speech


_AUDIO_HEAD = b'{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"'
_AUDIO_TAIL = b'"}}}'


class LiveSocket:
    """The messages of a Live session.

    The SDK creates and validates objects for every message, including fifty audio frames per second in each
    direction: 68 us per frame in and 63 us out, instead of 4 us and 2 us. There is no public alternative,
    so only this class uses the SDK's socket. Everything but audio is sent with the SDK's own methods.
    """

    def __init__(self, session: AsyncSession) -> None:
        self._session = session
        self._socket = session._ws  # noqa: SLF001 - see above

    async def receive(self) -> dict[str, Any]:
        """Return the next message; raises `ConnectionClosed` at the end, other errors if it is invalid."""
        message = orjson.loads(await self._socket.recv(decode=False))
        if not isinstance(message, dict):
            raise TypeError("a message is an object")
        return message

    async def send_audio(self, pcm: bytes) -> None:
        """Send microphone audio: PCM16, 16 kHz."""
        data = b2a_base64(pcm, newline=False)
        await self._socket.send(_AUDIO_HEAD + data + _AUDIO_TAIL, text=True)

    async def end_audio(self) -> None:
        """Report the end of the audio stream, so that the model does not wait for silence."""
        await self._session.send_realtime_input(audio_stream_end=True)

    async def send_turns(self, turns: Sequence[tuple[str, str]], *, answer: bool) -> None:
        """Send turns as roles and texts; `answer` requests a response."""
        content: list[Any] = [{"role": role, "parts": [{"text": text}]} for role, text in turns]
        await self._session.send_client_content(turns=content, turn_complete=answer)

    async def send_results(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Send results, each with `id`, `name` and `response`."""
        await self._session.send_tool_response(function_responses=list(results))  # type: ignore[arg-type]

    async def close(self) -> None:
        """Close the session."""
        await self._session.close()
