"""Configuration of Realtime sessions, and conversation items."""

from __future__ import annotations

from typing import Any

from jackfield.transport.protocol import ConnectionConfig, Utterance

from jackfield_openai.declared_tools import DeclaredTools
from jackfield_openai.settings import OpenAISettings

_MOST_OUTPUT_TOKENS = 4096
"""The API rejects a larger number."""

_FILLER_TOKENS = 120
"""Enough for one short sentence: a second of speech takes about twenty tokens."""

_PCM = {"type": "audio/pcm", "rate": 24_000}
_CONTENT = {"user": "input_text", "assistant": "output_text"}


def voice_session(
    opening: ConnectionConfig, settings: OpenAISettings, tools: DeclaredTools
) -> dict[str, Any]:
    """Return the configuration of a connection with audio; the model is in the URL."""
    session = tools_session(opening, tools)
    audio = _audio(opening, settings)
    for side in ("input", "output"):
        audio[side]["format"] = _PCM
    return {**session, "output_modalities": ["audio"], "audio": audio}


def browser_session(opening: ConnectionConfig, settings: OpenAISettings, tools: DeclaredTools) -> Any:
    """Return the configuration of a browser call, which negotiates its own audio format."""
    return {
        **tools_session(opening, tools),
        "model": settings.voice_model,
        "output_modalities": ["audio"],
        "audio": _audio(opening, settings),
    }


def tools_session(opening: ConnectionConfig, tools: DeclaredTools) -> dict[str, Any]:
    """Return instructions and tools, which override any that the browser may send."""
    session: dict[str, Any] = {
        "type": "realtime",
        "instructions": opening.instructions,
        "tools": tools.declarations,
        "tool_choice": "auto",
    }
    if opening.answer_tokens:
        session["max_output_tokens"] = min(opening.answer_tokens, _MOST_OUTPUT_TOKENS)
    return session


def filler_response(text: str, language: str | None) -> dict[str, Any]:
    """Return a response outside the conversation: it neither reads nor extends the history."""
    wanted = f"in the language {language}" if language else "word for word"
    return {
        "conversation": "none",
        "input": [],
        "instructions": f"Say this sentence {wanted}, and say nothing else: {text}",
        "tools": [],
        "tool_choice": "none",
        "max_output_tokens": _FILLER_TOKENS,
    }


def history_item(said: Utterance, item_id: str) -> dict[str, Any]:
    """Return an item for an earlier message."""
    return _message(said.speaker, _CONTENT[said.speaker], said.text, item_id)


def user_item(text: str, item_id: str) -> dict[str, Any]:
    """Return an item for a text message from the user."""
    return _message("user", "input_text", text, item_id)


def context_item(text: str, item_id: str) -> dict[str, Any]:
    """Return an item for a note."""
    return _message("system", "input_text", text, item_id)


def result_item(call_id: str, output: str, item_id: str) -> dict[str, Any]:
    """Return an item for a tool result."""
    return {"id": item_id, "type": "function_call_output", "call_id": call_id, "output": output}


def _message(role: str, kind: str, text: str, item_id: str) -> dict[str, Any]:
    return {"id": item_id, "type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _audio(opening: ConnectionConfig, settings: OpenAISettings) -> dict[str, dict[str, Any]]:
    wanted = opening.voice
    detection: dict[str, Any] = {
        "type": settings.turn_detection,
        "create_response": True,
        "interrupt_response": True,
    }
    if settings.turn_detection == "server_vad":
        detection["silence_duration_ms"] = wanted.silence_ms
    heard: dict[str, Any] = {"turn_detection": detection, "transcription": None}
    if wanted.transcribe:
        heard["transcription"] = {"model": settings.transcription_model}
        if wanted.language:
            heard["transcription"]["language"] = wanted.language.partition("-")[0].lower()
    if settings.noise_reduction:
        heard["noise_reduction"] = {"type": settings.noise_reduction}
    return {"input": heard, "output": {"voice": wanted.voice or settings.voice_name}}
