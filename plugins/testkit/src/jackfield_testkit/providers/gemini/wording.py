"""How Gemini words things: names in two spellings, errors, close reasons, sound in base64."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from jackfield_testkit.providers.model import Refusal

_FREE = frozenset({"args", "response", "parametersJsonSchema", "responseJsonSchema", "properties"})
"""What holds names that are not Gemini's, and that stay as they are."""

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
"""How Gemini reports each trouble to a request."""

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
"""How Gemini closes a Live connection for each trouble; it has no message for errors."""


def camel(value: Any) -> Any:
    """A message in the spelling of Gemini's reference; the SDK mixes it with snake_case."""
    if isinstance(value, list):
        return [camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    message = {}
    for key, each in value.items():
        name = re.sub(r"_([a-z])", lambda found: found.group(1).upper(), key)
        message[name] = each if name in _FREE else camel(each)
    return message


def error_body(status: int, message: str, retry_after: float | None = None) -> dict[str, Any]:
    """An error as Google's APIs answer it."""
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
    """A refusal as an error."""
    return error_body(refusal.status, refusal.message or refusal.code, refusal.retry_after)


def encode(pcm: bytes) -> str:
    """Sound, or any bytes, in a message."""
    return base64.b64encode(pcm).decode()


def decode(data: str) -> bytes:
    """Sound out of a message, in either alphabet of base64."""
    return base64.b64decode(data.replace("-", "+").replace("_", "/"))
