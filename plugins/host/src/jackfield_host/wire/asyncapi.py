"""The protocol as an AsyncAPI document, made of the very classes that read and describe its messages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Literal

from jackfield.protocol import PROTOCOL
from jackfield.protocol.close_codes import CLOSE_REASONS
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from jackfield_host.wire.incoming import OPENINGS, SPOKEN
from jackfield_host.wire.outgoing import EVENTS, PASSING

SAID_BY_CLIENT: tuple[type[BaseModel], ...] = (*OPENINGS, *SPOKEN)
"""Every message of a client."""

SAID_BY_HOST: tuple[type[BaseModel], ...] = (*PASSING, *EVENTS)
"""Every message of the host."""

_SCHEMAS = "#/components/schemas/"
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


def type_of(message: type[BaseModel]) -> str:
    """The name by which a message goes on the wire."""
    (name,) = message.model_fields["type"].annotation.__args__  # type: ignore[union-attr]
    return str(name)


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of every class of message, by the name of the class; references are among them."""
    as_read: Literal["validation"] = "validation"
    messages = [(message, as_read) for message in (*SAID_BY_CLIENT, *SAID_BY_HOST)]
    _, made = models_json_schema(messages, by_alias=True, ref_template=_SCHEMAS + "{model}")
    found: dict[str, dict[str, Any]] = made["$defs"]
    return found


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
                **{message.__name__: _message(message) for message in (*SAID_BY_CLIENT, *SAID_BY_HOST)},
                "Sound": _SOUND,
            },
            "schemas": schemas(),
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
    names = _names((*SAID_BY_CLIENT, *SAID_BY_HOST), mode)
    return {
        "address": f"/ws/{mode}",
        "title": f"A {mode} session",
        "messages": {name: {"$ref": _MESSAGES + name} for name in names},
        "bindings": {"ws": {"method": "GET", "bindingVersion": "0.1.0"}},
    }


def _operation(verb: str, mode: str) -> dict[str, Any]:
    """What the host does: it receives what clients say, and sends what it says itself."""
    said = SAID_BY_CLIENT if verb == "receive" else SAID_BY_HOST
    channel = f"#/channels/{mode}"
    return {
        "action": verb,
        "channel": {"$ref": channel},
        "messages": [{"$ref": f"{channel}/messages/{name}"} for name in _names(said, mode)],
    }


def _names(messages: Iterable[type[BaseModel]], mode: str) -> list[str]:
    return [message.__name__ for message in messages] + (["Sound"] if mode == "voice" else [])


def _message(message: type[BaseModel]) -> dict[str, Any]:
    return {
        "name": type_of(message),
        "title": type_of(message),
        "summary": (message.__doc__ or "").strip(),
        "payload": {"$ref": _SCHEMAS + message.__name__},
    }
