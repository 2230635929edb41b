"""HTTP errors: every failed request gets the same form of response, without internal details."""

from __future__ import annotations

import html
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from jackfield.protocol.close_codes import (
    BANNED,
    ENDED,
    PROVIDER_UNAVAILABLE,
    REPLACED,
    RESTARTING,
    TOO_MANY_SESSIONS,
    UNKNOWN_SESSION,
)
from jackfield.store import StoreUnavailableError
from jackfield_sessions.admission import SessionRefused
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from jackfield_host.security.auth_errors import AuthError

_log = logging.getLogger(__name__)

_STATUSES = {
    BANNED.name: 403,
    UNKNOWN_SESSION.name: 404,
    ENDED.name: 410,
    REPLACED.name: 409,
    TOO_MANY_SESSIONS.name: 429,
    PROVIDER_UNAVAILABLE.name: 503,
    RESTARTING.name: 503,
}
"""The HTTP status of a rejected session, by the name of its close reason."""

_ROUTING_ERRORS = {
    404: ("no_such_path", "There is no endpoint at this path; GET /openapi.json lists the endpoints."),
    405: (
        "wrong_method",
        "This path does not support the method; the `Allow` header lists the methods that it supports.",
    ),
}


class HttpError(Exception):
    """A request that failed: the status, a code for programs, a message and a suggestion for people."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        suggestion: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.suggestion = suggestion
        self.retry_after = retry_after
        self.headers = dict(headers or {})

    @property
    def wire(self) -> dict[str, Any]:
        """The value of the member `error`."""
        wire: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.suggestion:
            wire["suggestion"] = self.suggestion
        if self.retry_after is not None:
            wire["retryAfter"] = round(self.retry_after, 3)
        return wire

    def response(self) -> JSONResponse:
        """Return the response to the request."""
        headers = {**self.headers, **retry_after_header(self.retry_after)}
        return JSONResponse({"error": self.wire}, self.status, headers=headers)


def method_not_allowed(allowed: Sequence[str]) -> HttpError:
    """Return the error for a method that a path does not support."""
    return HttpError(405, *_ROUTING_ERRORS[405], headers={"Allow": ", ".join(allowed)})


def retry_after_header(seconds: float | None) -> dict[str, str]:
    """Return the `Retry-After` header, in whole seconds."""
    return {} if seconds is None else {"Retry-After": str(max(1, math.ceil(seconds)))}


def to_http_error(error: Exception) -> HttpError:
    """Convert an exception to the error that the client gets; unexpected exceptions are logged."""
    match error:
        case HttpError():
            return error
        case AuthError():
            return HttpError(error.status, error.code, error.message, headers=error.headers)
        case SessionRefused():
            return _session_refused(error)
        case StoreUnavailableError():
            _log.error("a request failed: the store is unavailable: %s", error)
            return HttpError(
                503,
                "store_unavailable",
                "The session store is unavailable.",
                suggestion="Try again in a moment.",
                retry_after=2.0,
            )
        case HTTPException():
            code, message = _ROUTING_ERRORS.get(error.status_code, ("refused", "The request was rejected."))
            return HttpError(error.status_code, code, message, headers=error.headers)
        case _:
            _log.error("a request failed", exc_info=error)
            return HttpError(
                500, "internal", "The host failed with an internal error.", suggestion="Try again."
            )


def _session_refused(refused: SessionRefused) -> HttpError:
    closing = refused.closing
    return HttpError(
        _STATUSES.get(closing.name, 503),
        closing.name,
        refused.message,
        suggestion=refused.suggestion,
        retry_after=refused.retry_after,
    )


_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>No such page · Jackfield</title>
<main>
<h1>There is no page at this address</h1>
<p><a href="{root}/">Open the start page</a> of this Jackfield host.</p>
<p>Programs find the endpoints at <a href="{root}/openapi.json">openapi.json</a>.</p>
</main>
</html>
"""


async def handle_routing_error(request: Request, error: Exception) -> Response:
    """Answer requests that no endpoint serves: unknown paths and methods."""
    failure = to_http_error(error)
    wants_page = "text/html" in request.headers.get("accept", "") and request.method in ("GET", "HEAD")
    if failure.status == 404 and wants_page:
        root = html.escape(request.scope.get("root_path", ""))
        return HTMLResponse(_PAGE.format(root=root), failure.status)
    return failure.response()
