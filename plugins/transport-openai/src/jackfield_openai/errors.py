"""Maps errors of OpenAI, its SDK and its sockets to the kernel's provider errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jackfield.transport.protocol import TransportError

if TYPE_CHECKING:
    from openai import APIError

CODES: dict[str, str] = {
    "session_expired": "session_expired",
    "rate_limit_exceeded": "rate_limit_exceeded",
    "rate_limit_error": "rate_limit_exceeded",
    "requests": "rate_limit_exceeded",
    "tokens": "rate_limit_exceeded",
    "server_error": "server_error",
    "internal_error": "server_error",
    "internal_server_error": "server_error",
    "inference_rate_limit_exceeded": "rate_limit_exceeded",
    "service_unavailable": "server_error",
    "overloaded_error": "server_error",
    "context_length_exceeded": "context_length_exceeded",
    "string_above_max_length": "context_length_exceeded",
    "invalid_api_key": "authentication",
    "invalid_authentication": "authentication",
    "authentication_error": "authentication",
    "permission_denied": "authentication",
    "permission_error": "authentication",
    "account_deactivated": "authentication",
    "invalid_organization": "authentication",
    "insufficient_quota": "quota_exhausted",
    "quota_exceeded": "quota_exhausted",
    "billing_hard_limit_reached": "quota_exhausted",
    "billing_not_active": "quota_exhausted",
    "content_filter": "content_refused",
    "content_policy_violation": "content_refused",
    "moderation_blocked": "content_refused",
    "input_audio_transcription_failed": "no_audio",
    "audio_unintelligible": "no_audio",
}
"""Provider errors by the code or the type of an error; the code is more specific and is looked up first.

`invalid_request_error` is missing on purpose: nearly every error has this type, so the status says more.
"""

STATUSES: dict[int, str] = {
    401: "authentication",
    403: "authentication",
    408: "network",
    409: "server_error",
    413: "context_length_exceeded",
    429: "rate_limit_exceeded",
}
"""Provider errors by HTTP status, for a response without a known code; others by their first digit."""

CLOSES: dict[int, str] = {
    1001: "going_away",
    1007: "invalid_request_error",
    1008: "invalid_request_error",
    1009: "invalid_request_error",
    1011: "server_error",
    1012: "going_away",
    1013: "server_error",
}
"""Provider errors by WebSocket close code, for a reason without a known code; others are network errors."""

IGNORED_CODES = frozenset({"response_cancel_not_active", "item_truncate_invalid_item_id"})
"""Ignored errors about something that had already ended when our message arrived."""

_MAX_DETAIL = 300
_SECRET = re.compile(r"\b(?:sk|ek|sess)[-_][A-Za-z0-9_*.-]{4,}")
"""OpenAI quotes a part of a wrong key in its error message."""


def error_code(code: object, kind: object, status: int | None = None) -> str:
    """Return the provider error for a code, a type and a status, in this order."""
    for name in (code, kind):
        if isinstance(name, str) and name in CODES:
            return CODES[name]
    if status is None:
        return "invalid_request_error"
    return STATUSES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")


def close_error_code(number: int | None, reason: str) -> str:
    """Return the provider error for a closed WebSocket."""
    for word in re.findall(r"\w+_\w+", reason):
        if word in CODES:
            return CODES[word]
    return CLOSES.get(number or 1006, "network")


def redacted(message: Any) -> str:
    """Return the provider's message, shortened and without keys."""
    return _SECRET.sub("...", str(message or ""))[:_MAX_DETAIL]


def transport_error(error: Exception) -> TransportError:
    """Convert an exception of the SDK or of its socket."""
    from openai import APIConnectionError, APIError, APIStatusError
    from websockets.exceptions import InvalidStatus

    if isinstance(error, APIStatusError):
        return _status_error(error, error.status_code, error.response.headers)
    if isinstance(error, APIConnectionError):
        return TransportError("network", redacted(error.__cause__ or error))
    if isinstance(error, APIError):
        return _status_error(error, None, {})
    if isinstance(error, InvalidStatus):
        return _handshake_error(error)
    if isinstance(error, OSError | TimeoutError):
        return TransportError("network", redacted(error) or type(error).__name__)
    return TransportError("server_error", f"{type(error).__name__}: {redacted(error)}")


def _status_error(error: APIError, status: int | None, headers: Mapping[str, str]) -> TransportError:
    code = error_code(error.code, error.type, status)
    return TransportError(code, _detail(code, error.message), _retry_after(headers))


def _handshake_error(error: Any) -> TransportError:
    """Convert the HTTP response to a WebSocket handshake."""
    import orjson

    response = error.response
    try:
        said = orjson.loads(response.body or b"{}").get("error") or {}
    except (orjson.JSONDecodeError, AttributeError):
        said = {}
    code = error_code(said.get("code"), said.get("type"), response.status_code)
    detail = said.get("message") or f"the server answered with status {response.status_code}"
    return TransportError(code, _detail(code, detail), _retry_after(response.headers))


def _detail(code: str, message: str) -> str:
    return "the key was rejected" if code == "authentication" else redacted(message)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, ValueError):
        return None
