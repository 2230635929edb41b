"""Errors over HTTP: one shape, whoever found the fault, and nothing about the inside of the host."""

from __future__ import annotations

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
from starlette.responses import JSONResponse, Response

from jackfield_host.security.identity import Refused

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
"""The status with which a client is turned refused, by why it is."""

_SENTENCES = {
    404: ("no_such_path", "There is nothing at this address; GET /openapi.json lists what there is."),
    405: ("wrong_method", "This address does not know that method; the header `Allow` names those it knows."),
}


class HttpError(Exception):
    """A request that is not answered as it was meant, and what whoever sent it can do."""

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
        """What stands under `error`."""
        wire: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.suggestion:
            wire["suggestion"] = self.suggestion
        if self.retry_after is not None:
            wire["retryAfter"] = round(self.retry_after, 3)
        return wire

    def response(self) -> JSONResponse:
        """The answer to the request."""
        headers = {**self.headers, **waiting(self.retry_after)}
        return JSONResponse({"error": self.wire}, self.status, headers=headers)


def wrong_method(allowed: Sequence[str]) -> HttpError:
    """A method that a path does not know."""
    return HttpError(405, *_SENTENCES[405], headers={"Allow": ", ".join(allowed)})


def waiting(seconds: float | None) -> dict[str, str]:
    """The header that says when to try again, in whole seconds."""
    return {} if seconds is None else {"Retry-After": str(max(1, math.ceil(seconds)))}


def of(error: Exception) -> HttpError:
    """What a request is answered with that failed so; whatever nobody expected is logged."""
    match error:
        case HttpError():
            return error
        case Refused():
            return HttpError(error.status, error.code, error.sentence, headers=error.headers)
        case SessionRefused():
            return _refused_session(error)
        case StoreUnavailableError():
            _log.error("a request failed: the store is unavailable: %s", error)
            return HttpError(
                503,
                "store_unavailable",
                "The host cannot remember anything now.",
                suggestion="Try again soon.",
                retry_after=2.0,
            )
        case HTTPException():
            code, message = _SENTENCES.get(error.status_code, ("refused", "The request was refused."))
            return HttpError(error.status_code, code, message, headers=error.headers)
        case _:
            _log.error("a request failed", exc_info=error)
            return HttpError(500, "internal", "The host failed at that.", suggestion="Try again.")


def _refused_session(refused: SessionRefused) -> HttpError:
    closing = refused.closing
    return HttpError(
        _STATUSES.get(closing.name, 503),
        closing.name,
        refused.message,
        suggestion=closing.advice if refused.retry_after is None else None,
        retry_after=refused.retry_after,
    )


async def answered(_: Request, error: Exception) -> Response:
    """How the application answers what no endpoint has caught: paths and methods that do not exist."""
    return of(error).response()
