"""Maps errors of Gemini, its SDK and its sockets to the kernel's provider errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
import orjson
from jackfield.transport.protocol import TransportError

LONGEST_DETAIL = 300


class Said(NamedTuple):
    """Words of the provider and the trouble they mean."""

    words: re.Pattern[str]
    code: str


def _said(pattern: str, code: str) -> Said:
    return Said(re.compile(pattern, re.IGNORECASE), code)


WORDS: Sequence[Said] = (
    _said(r"api.?key|credential|unauthenticated|permission.?denied|auth.?token", "authentication"),
    _said(r"exceeded your current quota|billing|per.?day|depleted", "quota_exhausted"),
    _said(r"resource.?(has been )?exhausted|rate.?limit|too many|quota", "rate_limit_exceeded"),
    _said(
        r"token count|maximum number of tokens|context (window|length)|too long", "context_length_exceeded"
    ),
    _said(r"session (not found|expired|has expired)|expired session|resumption", "session_expired"),
    # A connection's time is up although its session is not: the handle takes it up again.
    _said(r"deadline expired|operation was aborted|session duration|goaway", "network"),
    _said(r"unavailable|overloaded|internal error", "server_error"),
    _said(r"blocked|prohibited|safety", "content_refused"),
)
"""Looked up first and in this order, because Gemini uses one close code or status for several troubles."""

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
"""How a WebSocket was closed, when its reason says nothing that is known."""

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
"""An HTTP status, of an answer or of a refused WebSocket."""

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
"""Why an answer in text ended, where it did not end well."""

TURN_REASONS: Mapping[str, str] = {
    "MALFORMED_FUNCTION_CALL": "server_error",
    "MAX_REGENERATION_REACHED": "server_error",
    "RESPONSE_REJECTED": "content_refused",
}
"""Why a spoken turn ended, where it did not end well; further reasons are about what was refused."""

_REFUSED_TURN = re.compile(r"PROHIBITED|SAFETY|BLOCKLIST|CELEBRITY|PROMINENT|NCII|MINORS|INPUT_OTHER")
_DURATION = re.compile(r"^(\d+(?:\.\d+)?)s$")


def of_words(text: str) -> str | None:
    """The trouble that the provider's words mean, if they are known."""
    return next((said.code for said in WORDS if said.words.search(text)), None)


def of_close(code: int, reason: str) -> tuple[str, str]:
    """The trouble behind a closed WebSocket, and a sentence about it."""
    detail = f"the provider closed the connection: {code} {reason}".rstrip()
    return of_words(reason) or CLOSE_CODES.get(code, "network"), detail[:LONGEST_DETAIL]


def of_status(status: int, text: str, details: Any = None) -> TransportError:
    """The trouble behind an HTTP status and what came with it."""
    code = STATUSES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    if status < 500:
        # What a server of Google's says about its own faults names no fault of ours.
        code = of_words(f"{text} {_quotas(details)}") or code
    detail = f"the provider answered {status}: {text}".rstrip(": ")
    return TransportError(code, detail[:LONGEST_DETAIL], _retry_after(details))


def of_turn(reason: str) -> str | None:
    """The trouble behind the reason why a spoken turn ended, if it is one."""
    return TURN_REASONS.get(reason) or ("content_refused" if _REFUSED_TURN.search(reason) else None)


def of_exception(error: Exception) -> TransportError:
    """The trouble behind whatever the SDK, the socket or the network raised."""
    if isinstance(error, TransportError):
        return error
    for judge in (_of_sdk, _of_socket, _of_network):
        if (trouble := judge(error)) is not None:
            return trouble
    return TransportError("server_error", f"the provider's message made no sense ({type(error).__name__})")


def _of_sdk(error: Exception) -> TransportError | None:
    from google.genai.errors import APIError

    if not isinstance(error, APIError):
        return None
    if 1000 <= error.code < 5000:  # The SDK reports a closed WebSocket as an error with its code.
        return TransportError(*of_close(error.code, str(error.details or "")))
    return of_status(error.code, str(error.message or error.status or ""), error.details)


def _of_socket(error: Exception) -> TransportError | None:
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    if isinstance(error, InvalidStatus):
        return _of_refusal(error.response.status_code, bytes(error.response.body or b""))
    if isinstance(error, ConnectionClosed):
        code, reason = (error.rcvd.code, error.rcvd.reason) if error.rcvd else (1006, "")
        return TransportError(*of_close(code, reason))
    return None


def _of_network(error: Exception) -> TransportError | None:
    from websockets.exceptions import WebSocketException

    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        detail = "the provider's certificate is not trusted; behind a proxy, name its certificates in ca_file"
        return TransportError("network", detail)
    if isinstance(error, TimeoutError):
        return TransportError("network", "the provider did not answer in time")
    ours = isinstance(error, (OSError, WebSocketException))
    if ours or type(error).__module__.startswith(("httpx", "httpcore", "aiohttp")):
        return TransportError("network", f"{type(error).__name__}: {error}"[:LONGEST_DETAIL])
    return None


def _of_refusal(status: int, body: bytes) -> TransportError:
    """The trouble behind a WebSocket that was turned away; its body is an error as any other, or a page."""
    try:
        details = orjson.loads(body)
        return of_status(status, str(details["error"]["message"]), details)
    except (ValueError, KeyError, TypeError):
        return of_status(status, "")


def seconds(duration: Any) -> float | None:
    """A duration as Google writes it, `"9.5s"`."""
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
