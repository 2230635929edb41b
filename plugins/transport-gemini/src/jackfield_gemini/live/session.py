"""A Live session: its configuration, and its messages on the socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from jackfield.transport.protocol import Opening, TransportError
from jackfield_gemini.settings import GeminiSettings
from jackfield_gemini.troubles import LONGEST_DETAIL
from binascii import b2a_base64
from collections.abc import Mapping, Sequence
import orjson

if TYPE_CHECKING:
    from google.genai.types import LiveConnectConfig
    from google.genai.live import AsyncSession


def live_config(opening: Opening, settings: GeminiSettings) -> LiveConnectConfig:
    """The configuration for `client.aio.live.connect`; `TransportError` when the SDK refuses it."""
    from google.genai.types import LiveConnectConfig

    try:
        return LiveConnectConfig.model_validate(_fields(opening, settings))
    except ValueError as error:
        detail = f"the SDK does not take what the session begins with: {error}"
        raise TransportError("invalid_request_error", detail[:LONGEST_DETAIL]) from None


def _fields(opening: Opening, settings: GeminiSettings) -> dict[str, Any]:
    config: dict[str, Any] = {
        "response_modalities": ["AUDIO"],
        "session_resumption": {"handle": opening.resume} if opening.resume else {},
        # Without it a session with audio ends after a quarter of an hour.
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


def past_turns(opening: Opening) -> list[tuple[str, str]]:
    """What was said before, as roles and texts; a resumed session knows it already."""
    if opening.resume:
        return []
    return [
        ("user" if said.speaker == "user" else "model", said.text) for said in opening.history if said.text
    ]


def _tools(opening: Opening, settings: GeminiSettings) -> list[dict[str, Any]]:
    # Models differ in whether they wait for their calls, so each declaration says it.
    behavior = settings.calls.upper()
    declared = [{"behavior": behavior, **each} for each in opening.declarations.values()]
    return [{"function_declarations": declared}] if declared else []


def _speech(opening: Opening, settings: GeminiSettings) -> dict[str, Any]:
    speech: dict[str, Any] = {}
    if voice := opening.voice.voice or settings.voice:
        speech["voice_config"] = {"prebuilt_voice_config": {"voice_name": voice}}
    if language := opening.voice.language or settings.language:
        speech["language_code"] = language
    return speech

_AUDIO_HEAD = b'{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"'
_AUDIO_TAIL = b'"}}}'


class Wire:
    """One Live session, as messages."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session
        self._socket = session._ws  # noqa: SLF001 - see above

    async def receive(self) -> dict[str, Any]:
        """The next message; `ConnectionClosed` at the end, `ValueError` or `TypeError` when it is none."""
        message = orjson.loads(await self._socket.recv(decode=False))
        if not isinstance(message, dict):
            raise TypeError("a message is an object")
        return message

    async def send_audio(self, pcm: bytes) -> None:
        """Speech of the user: PCM16, 16 kHz."""
        data = b2a_base64(pcm, newline=False)
        await self._socket.send(_AUDIO_HEAD + data + _AUDIO_TAIL, text=True)

    async def end_audio(self) -> None:
        """The microphone was closed; the model need not wait for a silence that will not come."""
        await self._session.send_realtime_input(audio_stream_end=True)

    async def send_turns(self, turns: Sequence[tuple[str, str]], *, answer: bool) -> None:
        """What was said, as roles and texts; `answer` has the model speak now."""
        content: list[Any] = [{"role": role, "parts": [{"text": text}]} for role, text in turns]
        await self._session.send_client_content(turns=content, turn_complete=answer)

    async def send_results(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Answers to calls, each with `id`, `name` and `response`."""
        await self._session.send_tool_response(function_responses=list(results))  # type: ignore[arg-type]

    async def close(self) -> None:
        """Hang up."""
        await self._session.close()
