"""Reading what the host says: JSON to plain values, with a sentence for what is none of the protocol."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import orjson

from jackfield_client.errors import ProtocolError
from jackfield_client.wire import messages
from jackfield_client.wire.messages import Message, Tool, Unknown, Welcome

KINDS: dict[str, type[Message]] = {
    "session": messages.Welcome,
    "caught_up": messages.CaughtUp,
    "reset": messages.Reset,
    "text_delta": messages.TextDelta,
    "transcript": messages.Transcript,
    "speech_started": messages.SpeechStarted,
    "speech_stopped": messages.SpeechStopped,
    "turn_complete": messages.TurnComplete,
    "interrupted": messages.Interrupted,
    "going_away": messages.GoingAway,
    "error": messages.HostError,
    "tool_decisions": messages.ToolDecisions,
    "message": messages.Said,
    "tool_start": messages.ToolStart,
    "tool_progress": messages.ToolProgress,
    "tool_complete": messages.ToolComplete,
    "tool_error": messages.ToolError,
    "confirmation_required": messages.ConfirmationRequired,
    "confirmation_settled": messages.ConfirmationSettled,
    "form_request": messages.FormRequest,
    "form_closed": messages.FormClosed,
    "session_status": messages.SessionStatus,
    "notification": messages.Notification,
    "custom": messages.Custom,
}
"""The messages of the protocol by their type; `audio` stands before frames and is read with them."""


class Member(NamedTuple):
    """One member of a message: its name on the wire, its name here, and what it may be."""

    wire: str
    name: str
    types: tuple[type, ...]
    required: bool


def decoded(text: str) -> dict[str, Any]:
    """A text frame as an object with a type."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ProtocolError(
            "The host sent something that is not JSON; is this the address of a host?"
        ) from None
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise ProtocolError("The host sent JSON that is no message; is this the address of a host?")
    return value


def read(value: Mapping[str, Any]) -> Message:
    """A message; one of a type that this client does not know is `Unknown`."""
    kind = KINDS.get(value["type"])
    if kind is None:
        return Unknown(value["type"], {name: each for name, each in value.items() if name != "type"})
    given: dict[str, Any] = {}
    for member in MEMBERS[kind]:
        if member.wire in value:
            given[member.name] = _checked(value["type"], member, value[member.wire])
        elif member.required:
            raise ProtocolError(f"The host sent `{value['type']}` without `{member.wire}`.")
    if kind is Welcome:
        given["tools"] = tuple(_tool(each) for each in given["tools"])
        given["provider_hints"] = tuple(map(str, given.get("provider_hints", ())))
    return kind(**given)


def event_id(value: Mapping[str, Any]) -> int | None:
    """The id of an event, also of a kind that this client does not know; None for what is only passing."""
    number = value.get("id")
    return number if isinstance(number, int) else None


def _members(kind: type[Message]) -> tuple[Member, ...]:
    hints = get_type_hints(kind)
    return tuple(
        Member(
            each.metadata.get("wire", _camel(each.name)),
            each.name,
            _types(hints[each.name]),
            each.default is MISSING,
        )
        for each in fields(kind)
    )


def _checked(kind: str, member: Member, value: Any) -> Any:
    # JSON has one kind of number, and a bool of Python is an int to `isinstance`.
    fits = isinstance(value, member.types) and (not isinstance(value, bool) or bool in member.types)
    if member.types and not fits:
        raise ProtocolError(f"The host sent `{kind}` with a `{member.wire}` that is none.")
    return value


def _types(hint: Any) -> tuple[type, ...]:
    """What `isinstance` can check of a hint; empty for anything."""
    if hint is Any:
        return ()
    if isinstance(hint, types.UnionType) or get_origin(hint) is Union:
        return tuple(each for part in get_args(hint) for each in _types(part))
    plain = get_origin(hint) or hint
    if plain is float:
        return (float, int)
    return (list,) if plain is tuple else (plain,)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _tool(value: Any) -> Tool:
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in Tool._fields):
        raise ProtocolError("The host sent `session` with a tool that is none.")
    return Tool(value["id"], value["summary"])


MEMBERS = {kind: _members(kind) for kind in KINDS.values()}
"""What each message consists of."""
