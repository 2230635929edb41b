"""Gemini's wire format: spelling of names, errors, close reasons, and audio in base64."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

import orjson

from jackfield_scripted.script import Refusal, ScriptedCall

_USER_DATA = frozenset({"args", "response", "parametersJsonSchema", "responseJsonSchema", "properties"})
"""Members that contain the user's own data, in which names are kept."""

_STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}

HTTP_ERRORS: Mapping[str, tuple[int, str]] = {
    "authentication": (400, "API key not valid. Please pass a valid API key."),
    "context_length_exceeded": (400, "The input token count exceeds the maximum number of tokens allowed."),
    "invalid_request_error": (400, "Request contains an invalid argument."),
    "quota_exhausted": (429, "You exceeded your current quota, please check your plan and billing details."),
    "rate_limit_exceeded": (429, "Resource has been exhausted (e.g. check quota)."),
    "server_error": (500, "An internal error has occurred."),
}
"""The status and message for each request error."""

CLOSE_REASONS: Mapping[str, tuple[int, str]] = {
    "authentication": (1007, "API key not valid. Please pass a valid API key."),
    "context_length_exceeded": (1007, "The input token count exceeds the maximum number of tokens allowed."),
    "invalid_request_error": (1007, "Request contains an invalid argument."),
    "quota_exhausted": (1011, "You exceeded your current quota, please check your plan and billing details."),
    "rate_limit_exceeded": (1011, "Resource has been exhausted (e.g. check quota)."),
    "server_error": (1011, "Internal error encountered."),
    "session_expired": (1008, "BidiGenerateContent session expired"),
    "going_away": (1011, "Deadline expired before operation could complete."),
}
"""The close code and reason for each error of a Live connection, whose protocol has no error message."""


def to_camel_case(value: Any) -> Any:
    """Return a message in camelCase, as in Gemini's reference; the SDK mixes in snake_case."""
    if isinstance(value, list):
        return [to_camel_case(each) for each in value]
    if not isinstance(value, dict):
        return value
    message = {}
    for key, each in value.items():
        name = re.sub(r"_([a-z])", lambda found: found.group(1).upper(), key)
        message[name] = each if name in _USER_DATA else to_camel_case(each)
    return message


def error_body(status: int, message: str, retry_after: float | None = None) -> dict[str, Any]:
    """Return an error in the format of Google's APIs."""
    error: dict[str, Any] = {
        "code": status,
        "message": message,
        "status": _STATUS_NAMES.get(status, "UNKNOWN"),
    }
    if retry_after is not None:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        error["details"] = [{"@type": kind, "retryDelay": f"{retry_after:g}s"}]
    return {"error": error}


def refusal_body(refusal: Refusal) -> dict[str, Any]:
    """Return the error body of a refusal."""
    return error_body(refusal.status, refusal.message or refusal.code, refusal.retry_after)


def encode(pcm: bytes) -> str:
    """Encode bytes for a message."""
    return base64.b64encode(pcm).decode()


def decode(data: str) -> bytes:
    """Decode bytes from a message, in either base64 alphabet."""
    return base64.b64decode(data.replace("-", "+").replace("_", "/"))


def function_call(call: ScriptedCall, default_id: str) -> dict[str, Any]:
    """Return a `functionCall`; malformed arguments become None, because Gemini cannot send them."""
    args: Any = call.arguments
    if isinstance(args, str):
        try:
            args = orjson.loads(args)
        except orjson.JSONDecodeError:
            args = None
    return {"id": call.id or default_id, "name": call.tool, "args": args}
