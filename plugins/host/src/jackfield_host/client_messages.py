"""Parses the messages of clients, and generates the JSON Schemas of the protocol.

Both are compiled from the dataclasses in `jackfield.protocol.messages`.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from annotated_types import DocInfo
from jackfield.protocol.codec import InvalidMessageError, Message, members, message_type
from jackfield.protocol.messages import ALL_MESSAGES, CLIENT_MESSAGES, FirstMessage, LaterMessage
from pydantic import Field, TypeAdapter, ValidationError

from jackfield_host.endpoint import SCHEMA_REF
from jackfield_host.request_models import check_time_zone
from jackfield_host.validation_errors import describe_error

_first: TypeAdapter[FirstMessage] = TypeAdapter(Annotated[FirstMessage, Field(discriminator="type")])
_later: TypeAdapter[LaterMessage] = TypeAdapter(Annotated[LaterMessage, Field(discriminator="type")])


def parse_first_message(text: str) -> FirstMessage:
    """Parse the first message from a client: `start` or `resume`."""
    try:
        message = _first.validate_json(text)
    except ValidationError as error:
        raise InvalidMessageError(describe_error(error, _member_names, tagged=True)) from None
    if message.time_zone is not None:
        try:
            check_time_zone(message.time_zone)
        except ValueError as error:
            raise InvalidMessageError(f"timeZone: {error}") from None
    return message


def parse_client_message(text: str) -> LaterMessage:
    """Parse any later message from a client."""
    try:
        return _later.validate_json(text)
    except ValidationError as error:
        raise InvalidMessageError(describe_error(error, _member_names, tagged=True)) from None


@cache
def message_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of all messages and of the objects in them, by the names of their classes."""
    validation: Literal["validation"] = "validation"
    adapters = [(kind.__name__, validation, TypeAdapter(kind)) for kind in ALL_MESSAGES]
    _, found = TypeAdapter.json_schemas(adapters, by_alias=True, ref_template=SCHEMA_REF + "{model}")
    schemas: dict[str, dict[str, Any]] = found["$defs"]
    nested = {member.item for kind in ALL_MESSAGES for member in members(kind) if member.item}
    for each in (*ALL_MESSAGES, *nested):
        _complete(schemas[each.__name__], each)
    return schemas


def _complete(schema: dict[str, Any], kind: type[Message]) -> None:
    """Add what pydantic does not read from a dataclass: descriptions, and members with a fixed value."""
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
    """Return the members of the message with this type."""
    kind = next((each for each in CLIENT_MESSAGES if message_type(each) == name), None)
    return [member.wire for member in members(kind)] if kind else []
