"""What a Realtime session is told to be."""

from __future__ import annotations

from typing import Any

from jackfield.transport.protocol import Opening, Utterance

from jackfield_openai.declared_tools import DeclaredTools
from jackfield_openai.options import Options

_MOST_OUTPUT_TOKENS = 4096
"""The API refuses a larger number."""

_FILLER_TOKENS = 120
"""Room for one short sentence: a second of speech takes some twenty tokens."""

_PCM = {"type": "audio/pcm", "rate": 24_000}
_CONTENT = {"user": "input_text", "assistant": "output_text"}


def voice_session(opening: Opening, options: Options, tools: DeclaredTools) -> dict[str, Any]:
    """Everything, for a connection that carries the sound itself; its model stands in the URL."""
    session = beside_session(opening, tools)
    audio = _audio(opening, options)
    for side in ("input", "output"):
        audio[side]["format"] = _PCM
    return {**session, "output_modalities": ["audio"], "audio": audio}


def browser_session(opening: Opening, options: Options, tools: DeclaredTools) -> Any:
    """Everything, for a call whose sound takes another way and agrees on its own format."""
    return {
        **beside_session(opening, tools),
        "model": options.voice_model,
        "output_modalities": ["audio"],
        "audio": _audio(opening, options),
    }


def beside_session(opening: Opening, tools: DeclaredTools) -> dict[str, Any]:
    """What a browser must not decide, even though it could send a session of its own: words and tools."""
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
    """A sentence said outside the conversation: nothing is read for it, and nothing remembered of it."""
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
    """Something that was said before, as an item of the conversation."""
    return _message(said.speaker, _CONTENT[said.speaker], said.text, item_id)


def user_item(text: str, item_id: str) -> dict[str, Any]:
    """A typed message of the user."""
    return _message("user", "input_text", text, item_id)


def context_item(text: str, item_id: str) -> dict[str, Any]:
    """A note for the model."""
    return _message("system", "input_text", text, item_id)


def result_item(call_id: str, output: str, item_id: str) -> dict[str, Any]:
    """The output of a function."""
    return {"id": item_id, "type": "function_call_output", "call_id": call_id, "output": output}


def _message(role: str, kind: str, text: str, item_id: str) -> dict[str, Any]:
    return {"id": item_id, "type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _audio(opening: Opening, options: Options) -> dict[str, dict[str, Any]]:
    wanted = opening.voice
    detection: dict[str, Any] = {
        "type": options.turn_detection,
        "create_response": True,
        "interrupt_response": True,
    }
    if options.turn_detection == "server_vad":
        detection["silence_duration_ms"] = wanted.silence_ms
    heard: dict[str, Any] = {"turn_detection": detection, "transcription": None}
    if wanted.transcribe:
        heard["transcription"] = {"model": options.transcription_model}
        if wanted.language:
            heard["transcription"]["language"] = wanted.language.partition("-")[0].lower()
    if options.noise_reduction:
        heard["noise_reduction"] = {"type": options.noise_reduction}
    return {"input": heard, "output": {"voice": wanted.voice or options.voice_name}}
