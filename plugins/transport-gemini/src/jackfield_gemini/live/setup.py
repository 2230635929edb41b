"""What a Live session begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackfield.transport.protocol import Opening, TransportError

from jackfield_gemini.settings import GeminiSettings
from jackfield_gemini.troubles import LONGEST_DETAIL

if TYPE_CHECKING:
    from google.genai.types import LiveConnectConfig


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
