"""The protocol as an AsyncAPI document, made of the very classes that read and describe its messages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from jackfield.protocol import PROTOCOL
from jackfield.protocol.close_codes import CLOSE_REASONS
from jackfield.protocol.codec import Message, message_type
from jackfield.protocol.messages import ALL_MESSAGES, CLIENT_MESSAGES, HOST_MESSAGES

from jackfield_host.client_messages import SCHEMA_REF, message_schemas

_MESSAGES = "#/components/messages/"

_SOUND = {
    "name": "sound",
    "title": "sound",
    "summary": "A binary frame of speech, from either side, on `/ws/voice` alone.",
    "contentType": "audio/pcm;rate=24000;channels=1",
    "payload": {
        "schemaFormat": "application/vnd.aai.asyncapi;version=3.0.0",
        "schema": {"type": "string", "format": "binary", "description": "PCM16, 24 kHz, mono."},
    },
}


@cache
def document() -> dict[str, Any]:
    """The AsyncAPI 3.0 document."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Jackfield sessions",
            "version": PROTOCOL.rpartition(".")[2],
            "description": _description(),
            "license": {"name": "MIT"},
        },
        "defaultContentType": "application/json",
        "channels": {"text": _channel("text"), "voice": _channel("voice")},
        "operations": {
            f"{verb}{mode.title()}": _operation(verb, mode)
            for mode in ("text", "voice")
            for verb in ("receive", "send")
        },
        "components": {
            "messages": {
                **{message.__name__: _message(message) for message in ALL_MESSAGES},
                "Sound": _SOUND,
            },
            "schemas": message_schemas(),
        },
    }


def _description() -> str:
    codes = "\n".join(f"- {each.code} `{each.name}`: {each.reason}. {each.advice}" for each in CLOSE_REASONS)
    return (
        f"JSON text frames, and on `/ws/voice` binary frames of speech. Subprotocol `{PROTOCOL}`. A client "
        "says `start` or `resume` first; the host answers with `session`, or with `error` and a close. What "
        f"the host closes with:\n\n{codes}"
    )


def _channel(mode: str) -> dict[str, Any]:
    names = _names(ALL_MESSAGES, mode)
    return {
        "address": f"/ws/{mode}",
        "title": f"A {mode} session",
        "messages": {name: {"$ref": _MESSAGES + name} for name in names},
        "bindings": {"ws": {"method": "GET", "bindingVersion": "0.1.0"}},
    }


def _operation(verb: str, mode: str) -> dict[str, Any]:
    """What the host does: it receives what clients say, and sends what it says itself."""
    said = CLIENT_MESSAGES if verb == "receive" else HOST_MESSAGES
    channel = f"#/channels/{mode}"
    return {
        "action": verb,
        "channel": {"$ref": channel},
        "messages": [{"$ref": f"{channel}/messages/{name}"} for name in _names(said, mode)],
    }


def _names(messages: Iterable[type[Message]], mode: str) -> list[str]:
    return [message.__name__ for message in messages] + (["Sound"] if mode == "voice" else [])


def _message(message: type[Message]) -> dict[str, Any]:
    return {
        "name": message_type(message),
        "title": message_type(message),
        "summary": (message.__doc__ or "").strip(),
        "payload": {"$ref": SCHEMA_REF + message.__name__},
    }
