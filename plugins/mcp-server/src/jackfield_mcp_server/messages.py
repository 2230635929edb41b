"""Parses JSON-RPC messages in HTTP requests strictly; an error names the rule that a message breaks."""

from __future__ import annotations

from typing import Any, NamedTuple

import mcp_types as t
import orjson
from jackfield.strict_json import StrictJsonError, parse_arguments

Json = dict[str, Any]


class MessageError(Exception):
    """A body is not a JSON-RPC message; the client gets the error's code and text."""

    def __init__(self, code: int, text: str, request_id: str | int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.request_id = request_id


class Message(NamedTuple):
    """A request, a notification or a reply."""

    body: Json
    method: str | None
    """None for a reply."""
    id: str | int | None
    """None for a notification."""
    params: Json | None


def parse_message(content: bytes) -> Message:
    """Return the message in a body; raises `MessageError` if the body is invalid."""
    try:
        body, _ = parse_arguments(content)
    except StrictJsonError as error:
        raise _not_an_object(content, error) from None
    if not content:
        raise MessageError(t.PARSE_ERROR, "Parse error: the body is empty.")
    request_id = body.get("id")
    if "id" in body and (isinstance(request_id, bool) or not isinstance(request_id, str | int)):
        raise MessageError(t.INVALID_REQUEST, "`id` must be a string or an integer.")
    if body.get("jsonrpc") != "2.0":
        raise MessageError(t.INVALID_REQUEST, '`jsonrpc` must be "2.0".', request_id)
    if "method" not in body and ("result" in body or "error" in body) and request_id is not None:
        return Message(body, None, request_id, None)
    method, params = body.get("method"), body.get("params")
    if not isinstance(method, str):
        raise MessageError(t.INVALID_REQUEST, "`method` must be a string.", request_id)
    if params is not None and not isinstance(params, dict):
        raise MessageError(t.INVALID_REQUEST, "`params` must be an object.", request_id)
    return Message(body, method, request_id, params)


def _not_an_object(content: bytes, error: StrictJsonError) -> MessageError:
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, list):
        text = "Batches are not supported; send one message per request."
        return MessageError(t.INVALID_REQUEST, text)
    if value is not None and not isinstance(value, dict):
        return MessageError(t.INVALID_REQUEST, "The body must be one JSON-RPC message, an object.")
    fault = error.faults[0]
    return MessageError(t.PARSE_ERROR, f"Parse error at {fault.where}: {fault.message}.")
