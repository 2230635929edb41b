"""Maps errors of Gemini, its SDK and its sockets to the kernel's provider errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from jackfield.transport.protocol import TransportError

MAX_DETAIL = 300


class ErrorPattern(NamedTuple):
    """A pattern in a provider's message, and the error that it means."""

    words: re.Pattern[str]
    code: str


def _pattern(pattern: str, code: str) -> ErrorPattern:
    return ErrorPattern(re.compile(pattern, re.IGNORECASE), code)


WORDS: Sequence[ErrorPattern] = (
    _pattern(r"api.?key|credential|unauthenticated|permission.?denied|auth.?token", "authentication"),
    _pattern(r"exceeded your current quota|billing|per.?day|depleted", "quota_exhausted"),
    _pattern(r"resource.?(has been )?exhausted|rate.?limit|too many|quota", "rate_limit_exceeded"),
    _pattern(
        r"token count|maximum number of tokens|context (window|length)|too long", "context_length_exceeded"
    ),
    _pattern(r"session (not found|expired|has expired)|expired session|resumption", "session_expired"),
    # The connection expired, but its session did not: the handle resumes it.
    _pattern(r"deadline expired|operation was aborted|session duration|goaway", "network"),
    _pattern(r"unavailable|overloaded|internal error", "server_error"),
    _pattern(r"blocked|prohibited|safety", "content_refused"),
)
"""Searched first and in this order, because Gemini uses one close code or status for several errors."""

CLOSE_CODES: Mapping[int, str] = {
    1000: "network",
    1001: "network",
    1006: "network",
    1007: "invalid_request_error",
    1008: "invalid_request_error",
    1009: "invalid_request_error",
    1011: "server_error",
    1012: "server_error",
    1013: "rate_limit_exceeded",
    1014: "server_error",
}
"""Provider errors by WebSocket close code, for a reason without a known pattern."""

STATUSES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication",
    403: "authentication",
    404: "invalid_request_error",
    408: "network",
    413: "context_length_exceeded",
    429: "rate_limit_exceeded",
    499: "network",
    500: "server_error",
    502: "server_error",
    503: "server_error",
    504: "server_error",
}
"""Provider errors by HTTP status, of a response or of a failed WebSocket handshake."""

FINISH_REASONS: Mapping[str, str] = {
    "SAFETY": "content_refused",
    "RECITATION": "content_refused",
    "LANGUAGE": "content_refused",
    "BLOCKLIST": "content_refused",
    "PROHIBITED_CONTENT": "content_refused",
    "SPII": "content_refused",
    "IMAGE_SAFETY": "content_refused",
    "MALFORMED_FUNCTION_CALL": "server_error",
    "UNEXPECTED_TOOL_CALL": "server_error",
    "TOO_MANY_TOOL_CALLS": "server_error",
    "MALFORMED_RESPONSE": "server_error",
    "OTHER": "server_error",
}
"""Provider errors by the reason why a text answer ended."""

TURN_REASONS: Mapping[str, str] = {
    "MALFORMED_FUNCTION_CALL": "server_error",
    "MAX_REGENERATION_REACHED": "server_error",
    "RESPONSE_REJECTED": "content_refused",
}
"""Provider errors by the reason why a voice turn ended; other reasons are about rejected content."""

_REFUSED_TURN = re.compile(r"PROHIBITED|SAFETY|BLOCKLIST|CELEBRITY|PROMINENT|NCII|MINORS|INPUT_OTHER")
_DURATION = re.compile(r"^(\d+(?:\.\d+)?)s$")


def code_from_text(text: str) -> str | None:
    """Return the error that a message means, or None."""
    return next((said.code for said in WORDS if said.words.search(text)), None)


def close_error(code: int, reason: str) -> tuple[str, str]:
    """Return the error for a closed WebSocket, and its description."""
    detail = f"the provider closed the connection: {code} {reason}".rstrip()
    return code_from_text(reason) or CLOSE_CODES.get(code, "network"), detail[:MAX_DETAIL]


def status_error(status: int, text: str, details: Any = None) -> TransportError:
    """Return the error for an HTTP status and its details."""
    code = STATUSES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    if status < 500:
        # A server error is Google's fault, whatever its message says.
        code = code_from_text(f"{text} {_quotas(details)}") or code
    detail = f"the provider answered {status}: {text}".rstrip(": ")
    return TransportError(code, detail[:MAX_DETAIL], _retry_after(details))


def turn_error_code(reason: str) -> str | None:
    """Return the error for the reason why a voice turn ended, or None."""
    return TURN_REASONS.get(reason) or ("content_refused" if _REFUSED_TURN.search(reason) else None)


def transport_error(error: Exception) -> TransportError:
    """Convert an exception of the SDK, the socket or the network."""
    if isinstance(error, TransportError):
        return error
    for judge in (_sdk_error, _socket_error, _network_error):
        if (trouble := judge(error)) is not None:
            return trouble
    return TransportError("server_error", f"the provider sent an invalid message ({type(error).__name__})")


def _sdk_error(error: Exception) -> TransportError | None:
    from google.genai.errors import APIError

    if not isinstance(error, APIError):
        return None
    if 1000 <= error.code < 5000:  # The SDK reports a closed WebSocket as an error with its code.
        return TransportError(*close_error(error.code, str(error.details or "")))
    return status_error(error.code, str(error.message or error.status or ""), error.details)


def _socket_error(error: Exception) -> TransportError | None:
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    if isinstance(error, InvalidStatus):
        return _handshake_error(error.response.status_code, bytes(error.response.body or b""))
    if isinstance(error, ConnectionClosed):
        code, reason = (error.rcvd.code, error.rcvd.reason) if error.rcvd else (1006, "")
        return TransportError(*close_error(code, reason))
    return None


def _network_error(error: Exception) -> TransportError | None:
    from websockets.exceptions import WebSocketException

    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        detail = "the provider's certificate is not trusted; behind a proxy, name its certificates in ca_file"
        return TransportError("network", detail)
    if isinstance(error, TimeoutError):
        return TransportError("network", "the provider did not answer in time")
    ours = isinstance(error, (OSError, WebSocketException))
    if ours or type(error).__module__.startswith(("httpx", "httpcore", "aiohttp")):
        return TransportError("network", f"{type(error).__name__}: {error}"[:MAX_DETAIL])
    return None


def _handshake_error(status: int, body: bytes) -> TransportError:
    """Convert the response to a failed WebSocket handshake; its body is a JSON error or a page."""
    try:
        details = orjson.loads(body)
        return status_error(status, str(details["error"]["message"]), details)
    except (ValueError, KeyError, TypeError):
        return status_error(status, "")


def seconds(duration: Any) -> float | None:
    """Parse a duration in Google's format, `"9.5s"`."""
    found = _DURATION.match(duration) if isinstance(duration, str) else None
    return float(found.group(1)) if found else None


def _details(details: Any) -> list[Mapping[str, Any]]:
    error = details.get("error", details) if isinstance(details, dict) else {}
    found = error.get("details") if isinstance(error, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _retry_after(details: Any) -> float | None:
    return next((s for each in _details(details) if (s := seconds(each.get("retryDelay"))) is not None), None)


def _quotas(details: Any) -> str:
    violations = [
        v for each in _details(details) for v in each.get("violations") or () if isinstance(v, dict)
    ]
    return " ".join(str(violation.get("quotaId", "")) for violation in violations)
