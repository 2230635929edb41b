"""Validates the messages of clients, and publishes the JSON Schemas of the protocol.

Both are compiled from the dataclasses of `jackfield.protocol.messages`.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from annotated_types import DocInfo
from jackfield.protocol.codec import InvalidMessageError, Message, members, message_type
from jackfield.protocol.messages import ALL_MESSAGES, CLIENT_MESSAGES, FirstMessage, LaterMessage
from pydantic import Field, TypeAdapter, ValidationError

from jackfield_host.mistakes import explained
from jackfield_host.wire.zones import check_time_zone

SCHEMA_REF = "#/components/schemas/"

_first: TypeAdapter[FirstMessage] = TypeAdapter(Annotated[FirstMessage, Field(discriminator="type")])
_later: TypeAdapter[LaterMessage] = TypeAdapter(Annotated[LaterMessage, Field(discriminator="type")])


def parse_first_message(text: str) -> FirstMessage:
    """The first message of a client: `start` or `resume`."""
    try:
        message = _first.validate_json(text)
    except ValidationError as error:
        raise InvalidMessageError(explained(error, _member_names, tagged=True)) from None
    if message.time_zone is not None:
        try:
            check_time_zone(message.time_zone)
        except ValueError as error:
            raise InvalidMessageError(f"timeZone: {error}") from None
    return message


def parse_client_message(text: str) -> LaterMessage:
    """Any later message of a client."""
    try:
        return _later.validate_json(text)
    except ValidationError as error:
        raise InvalidMessageError(explained(error, _member_names, tagged=True)) from None


@cache
def message_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of every message, by the name of its class, and of the objects in them."""
    validation: Literal["validation"] = "validation"
    adapters = [(kind.__name__, validation, TypeAdapter(kind)) for kind in ALL_MESSAGES]
    _, found = TypeAdapter.json_schemas(adapters, by_alias=True, ref_template=SCHEMA_REF + "{model}")
    schemas: dict[str, dict[str, Any]] = found["$defs"]
    nested = {member.item for kind in ALL_MESSAGES for member in members(kind) if member.item}
    for each in (*ALL_MESSAGES, *nested):
        _complete(schemas[each.__name__], each)
    return schemas


def _complete(schema: dict[str, Any], kind: type[Message]) -> None:
    """Add what pydantic does not take from a dataclass: descriptions, and members with a fixed value."""
    hints = get_type_hints(kind, include_extras=True)
    for member in members(kind):
        described = schema["properties"][member.wire]
        if member.required:
            described.pop("default", None)
        for each in getattr(hints[member.name], "__metadata__", ()):
            if isinstance(each, DocInfo):
                described["description"] = each.documentation
    schema["required"] = [member.wire for member in members(kind) if member.required]


def _member_names(name: str) -> list[str]:
    """The members of a message of some type."""
    kind = next((each for each in CLIENT_MESSAGES if message_type(each) == name), None)
    return [member.wire for member in members(kind)] if kind else []
