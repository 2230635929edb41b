"""Encodes the messages of both sides as JSON, and decodes those that a client receives.

The host validates what it receives more strictly than this, with validators compiled from the same classes.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import orjson

from jackfield.protocol.messages import (
    HOST_MESSAGES,
    SENT_AS_NULL,
    ClientMessage,
    HostMessage,
    SessionEvent,
    camel_case,
)

Message = ClientMessage | HostMessage

_M = TypeVar("_M", bound=HostMessage)

_ADDED_BY_LOG = ("id", "at")
"""The members that the event log adds to an event."""

_LOGGED = ("type", *_ADDED_BY_LOG)
"""The members of a logged event besides the fields it was published with."""

_JSON_TYPES: Mapping[Any, tuple[type, ...]] = {float: (float, int), Sequence: (list,), Mapping: (dict,)}

_NESTED = (list, dict)

_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "a boolean", list: "an array"}


class InvalidMessageError(ValueError):
    """A message that does not follow the protocol; the text says what is wrong, for the peer's developer."""


class Member(NamedTuple):
    """One member of a message."""

    wire: str
    """Its name on the wire."""
    name: str
    """The name of its field."""
    types: tuple[type, ...]
    """The types of its JSON value; empty for any."""
    required: bool
    absent: Any
    """The value at which the member is omitted; `MISSING` if it is always sent."""
    item: type[HostMessage] | None
    """The class of a nested object, or of the objects in an array."""


def members(kind: type[Message]) -> tuple[Member, ...]:
    """Return the members of a message class, in order."""
    return _MEMBERS[kind]


def message_type(kind: type[Message]) -> str:
    """Return the `type` of a message class."""
    return next(str(each.default) for each in fields(kind) if each.name == "type")


def to_wire(message: Message) -> dict[str, Any]:
    """Return a message as a JSON object; an event has no `id` and `at` until it is in the log."""
    wire: dict[str, Any] = {}
    for name, attribute, _, _, absent, item in _MEMBERS[type(message)]:
        value = getattr(message, attribute)
        if value != absent:
            wire[name] = _plain(value) if item else value
    if isinstance(message, SessionEvent) and not message.id:
        del wire["id"], wire["at"]
    return wire


def event_fields(event: HostMessage) -> tuple[str, dict[str, Any]]:
    """Return an event as a session publishes it: its type, and its members without `id` and `at`."""
    published: dict[str, Any] = {}
    for name, attribute, _, _, absent, item in _MEMBERS[type(event)]:
        value = getattr(event, attribute)
        if value != absent and name not in _ADDED_BY_LOG:
            published[name] = _plain(value) if item else value
    return published.pop("type"), published


def encode(message: Message | Mapping[str, Any]) -> bytes:
    """Return a message as UTF-8 JSON; values that JSON cannot represent are replaced by the nearest ones."""
    wire = to_wire(message) if isinstance(message, ClientMessage | HostMessage) else message
    try:
        return orjson.dumps(wire, default=str)
    except (TypeError, ValueError, RecursionError):
        return _repaired(wire)


def decode(text: str | bytes) -> dict[str, Any]:
    """Parse a text frame as a JSON object with a `type`; raises `InvalidMessageError` if it is not one."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise InvalidMessageError("it is not JSON") from None
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise InvalidMessageError("it is not a JSON object with a `type`")
    return value


def parse_host_message(value: Mapping[str, Any]) -> HostMessage | None:
    """Parse a message from the host, ignoring undefined members; returns None for an unknown type."""
    kind = _HOST_TYPES.get(value["type"])
    return None if kind is None else _parse(kind, value)


def _parse(kind: type[_M], value: Mapping[str, Any]) -> _M:
    given: dict[str, Any] = {}
    for member in members(kind):
        wire = member.wire
        if wire in value:
            each = value[wire]
            # JSON has one kind of number, and in Python a bool is an int.
            fits = isinstance(each, member.types) and (not isinstance(each, bool) or bool in member.types)
            if member.types and not fits:
                expected = _NAMES.get(member.types[0], "an object")
                raise InvalidMessageError(f"`{wire}` is not {expected}")
            given[member.name] = _parse_nested(member, each) if isinstance(each, _NESTED) else each
        elif member.required:
            raise InvalidMessageError(f"`{wire}` is missing")
    return kind(**given)


def _parse_nested(member: Member, value: Any) -> Any:
    """Parse an object or array as its field's class; return it unchanged if the field has no class."""
    if member.item is None:
        return tuple(value) if isinstance(value, list) and list in member.types else value
    if isinstance(value, list):
        return tuple(_parse_nested(member, each) for each in value)
    if not isinstance(value, dict):
        raise InvalidMessageError(f"`{member.wire}` has an item that is not an object")
    try:
        return _parse(member.item, value)
    except InvalidMessageError as error:
        raise InvalidMessageError(f"in `{member.wire}`: {error}") from None


def _read_members(kind: type[Message]) -> tuple[Member, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        Member(
            camel_case(each.name),
            each.name,
            _json_types(hints[each.name]),
            each.default is MISSING or each.name in _LOGGED or _is_constant(hints[each.name]),
            _absent(each),
            _item(hints[each.name]),
        )
        for each in fields(kind)
    )


def _absent(member: Field[Any]) -> Any:
    default = member.default
    left_out = (default is None or default is False) and member.metadata != SENT_AS_NULL
    return default if left_out else MISSING


def _is_constant(hint: Any) -> bool:
    """Return whether a member has one possible value, such as `type`."""
    return get_origin(hint) is Literal and len(get_args(hint)) == 1


def _json_types(hint: Any) -> tuple[type, ...]:
    """Return the types of a hint that `isinstance` can check; empty for any value."""
    origin = get_origin(hint)
    if hint is Any:
        return ()
    if origin is Annotated:
        return _json_types(get_args(hint)[0])
    if origin is Literal:
        return (str,)
    if origin is Union or isinstance(hint, types.UnionType):
        return tuple(each for part in get_args(hint) for each in _json_types(part))
    plain = origin or hint
    if is_dataclass(plain):
        return (dict,)
    return _JSON_TYPES.get(plain, (plain,))


def _item(hint: Any) -> type[HostMessage] | None:
    """Return the message class in a type hint; None if there is none."""
    if isinstance(hint, type) and is_dataclass(hint):
        return hint  # type: ignore[return-value]
    parts = get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)
    return next((found for part in parts if (found := _item(part))), None)


def _plain(value: Any) -> Any:
    """Return a nested object, or an array of them, as JSON."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return to_wire(value) if isinstance(value, HostMessage) else value


def _repaired(wire: Mapping[str, Any]) -> bytes:
    """Encode a message that orjson rejects, such as one with a lone surrogate or a number beyond 64 bits."""
    text = json.dumps(wire, default=str, skipkeys=True)
    value = json.loads(text, parse_constant=_null)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _null(_: str) -> None:
    """Replace NaN and the infinities, which JSON cannot represent, by null."""


class _Members(dict[type[Message], tuple[Member, ...]]):
    """The members of each message class, read from its fields once."""

    def __missing__(self, kind: type[Message]) -> tuple[Member, ...]:
        found = self[kind] = _read_members(kind)
        return found


_MEMBERS = _Members()

_HOST_TYPES: Mapping[str, type[HostMessage]] = {message_type(kind): kind for kind in HOST_MESSAGES}
