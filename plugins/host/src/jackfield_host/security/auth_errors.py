"""The reasons why the host rejects a request or handshake before serving it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal

AuthErrorCode = Literal[
    "missing_token",
    "bad_token",
    "expired_token",
    "early_token",
    "wrong_audience",
    "wrong_issuer",
    "foreign_origin",
    "missing_origin",
    "foreign_host",
    "not_local",
]

AUTH_ERRORS: MappingProxyType[AuthErrorCode, tuple[int, str]] = MappingProxyType(
    {
        "missing_token": (401, "This host requires a token: send `Authorization: Bearer <token>`."),
        "bad_token": (401, "This host does not accept the token."),
        "expired_token": (401, "The token has expired; get a new one."),
        "early_token": (
            401,
            "The token is not valid yet; compare the issuer's clock with this host's clock.",
        ),
        "wrong_audience": (401, "The token was issued for a different audience, not for this host."),
        "wrong_issuer": (401, "The token comes from an issuer that this host does not trust."),
        "foreign_origin": (403, "Pages from this origin may not use this host."),
        "missing_origin": (403, "A WebSocket handshake without a token must send an `Origin` header."),
        "foreign_host": (403, "This host does not accept the name in the `Host` header."),
        "not_local": (
            403,
            "This host requires no token, so it rejects requests from other machines and requests that came "
            "through a proxy (they carry a forwarding header, or use HTTP/1.0). To allow them, set up a "
            "token with `jackfield key`.",
        ),
    }
)
"""The status and the message of every refusal, by its code."""


class AuthError(Exception):
    """A request is rejected; the message reveals nothing about the host's internals."""

    def __init__(self, code: AuthErrorCode) -> None:
        self.code: AuthErrorCode = code
        self.status, self.message = AUTH_ERRORS[code]
        super().__init__(self.message)

    @property
    def headers(self) -> dict[str, str]:
        """The `WWW-Authenticate` header of a 401 response (RFC 6750)."""
        if self.status != 401:
            return {}
        if self.code == "missing_token":
            return {"WWW-Authenticate": 'Bearer realm="jackfield"'}
        return {"WWW-Authenticate": 'Bearer realm="jackfield", error="invalid_token"'}
