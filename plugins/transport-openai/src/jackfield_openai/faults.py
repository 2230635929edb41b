"""What OpenAI says when something is wrong, as troubles of ours."""

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
"""By the code or the type of an error; a code says more than a type, so it is looked up first.

`invalid_request_error` is not here: it is the type of nearly every error, so that the status says more.
"""

STATUSES: dict[int, str] = {
    401: "authentication",
    403: "authentication",
    408: "network",
    409: "server_error",
    413: "context_length_exceeded",
    429: "rate_limit_exceeded",
}
"""By the status of an HTTP answer whose body says nothing; the rest by its hundreds."""

CLOSES: dict[int, str] = {
    1001: "going_away",
    1007: "invalid_request_error",
    1008: "invalid_request_error",
    1009: "invalid_request_error",
    1011: "server_error",
    1012: "going_away",
    1013: "server_error",
}
"""By the code of a WebSocket's end whose reason says nothing; everything else is the network."""

HARMLESS = frozenset({"response_cancel_not_active", "item_truncate_invalid_item_id"})
"""Errors that only say that something was over before our message came."""

_LONGEST = 300
_SECRET = re.compile(r"\b(?:sk|ek|sess)[-_][A-Za-z0-9_*.-]{4,}")
"""OpenAI repeats a part of the key in what it says of a bad one."""


def trouble(code: object, kind: object, status: int | None = None) -> str:
    """One of `TROUBLES`, by the code, the type and the status, in this order."""
    for name in (code, kind):
        if isinstance(name, str) and name in CODES:
            return CODES[name]
    if status is None:
        return "invalid_request_error"
    return STATUSES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")


def trouble_of_end(number: int | None, reason: str) -> str:
    """One of `TROUBLES` for a WebSocket that the provider, or nobody, ended."""
    for word in re.findall(r"\w+_\w+", reason):
        if word in CODES:
            return CODES[word]
    return CLOSES.get(number or 1006, "network")


def told(message: Any) -> str:
    """What the provider said, short and without anything that looks like a key."""
    return _SECRET.sub("...", str(message or ""))[:_LONGEST]


def of_sdk(error: Exception) -> TransportError:
    """An exception of the SDK, or of the socket under it, as ours."""
    from openai import APIConnectionError, APIError, APIStatusError
    from websockets.exceptions import InvalidStatus

    if isinstance(error, APIStatusError):
        return _refused(error, error.status_code, error.response.headers)
    if isinstance(error, APIConnectionError):
        return TransportError("network", told(error.__cause__ or error))
    if isinstance(error, APIError):
        return _refused(error, None, {})
    if isinstance(error, InvalidStatus):
        return _turned_away(error)
    if isinstance(error, OSError | TimeoutError):
        return TransportError("network", told(error) or type(error).__name__)
    return TransportError("server_error", f"{type(error).__name__}: {told(error)}")


def _refused(error: APIError, status: int | None, headers: Mapping[str, str]) -> TransportError:
    code = trouble(error.code, error.type, status)
    return TransportError(code, _detail(code, error.message), _waiting(headers))


def _turned_away(error: Any) -> TransportError:
    """A WebSocket that was answered with a status instead of being opened."""
    import orjson

    response = error.response
    try:
        said = orjson.loads(response.body or b"{}").get("error") or {}
    except (orjson.JSONDecodeError, AttributeError):
        said = {}
    code = trouble(said.get("code"), said.get("type"), response.status_code)
    detail = said.get("message") or f"the server answered with status {response.status_code}"
    return TransportError(code, _detail(code, detail), _waiting(response.headers))


def _detail(code: str, message: str) -> str:
    return "the key was refused" if code == "authentication" else told(message)


def _waiting(headers: Mapping[str, str]) -> float | None:
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, ValueError):
        return None
