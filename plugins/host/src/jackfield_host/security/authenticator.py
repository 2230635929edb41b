"""Authentication: one decision for every request and every WebSocket handshake, before it is served."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from time import time
from typing import Any, NamedTuple, Protocol

from jackfield.protocol import PROTOCOL
from jackfield_sessions.admission import Identity
from starlette.datastructures import Headers

from jackfield_host.security.api_keys import PREFIX, ApiKeys
from jackfield_host.security.auth_errors import AuthError
from jackfield_host.security.origins import (
    LOOPBACK_NAMES,
    Authority,
    is_loopback,
    origin_at,
    parse_authority,
    parse_origin,
)
from jackfield_host.settings import AccessSettings

LOCAL = Identity("local")
"""The user of every request to a host that listens on a loopback address and requires no token."""

TOKEN_PROTOCOL = "jackfield.token."  # noqa: S105 - the prefix of a token, not a token
"""The prefix of a token, encoded as base64url, among the subprotocols that a browser offers."""

MAX_TOKEN = 5120
"""Maximum characters of a token: as base64url, it fits into the 8 KiB that a handshake line may have."""

_PROXY_HEADERS = re.compile(
    # Defined by HTTP itself for intermediaries.
    r"via|forwarded|cdn-loop"
    # Information of an intermediary about the original request: X-Forwarded-For, X-Original-URL, X-Real-IP.
    r"|x-(?:forwarded|original|real|proxy|proxyuser|envoy)(?:-.*)?"
    # The address of its client: True-Client-IP, CF-Connecting-IP, X-Cluster-Client-IP, X-Azure-ClientIP.
    r"|(?:.*-)?(?:client|connecting|remote|source|user)-?(?:ip|ipv6|addr|address|port)",
    re.ASCII,
)

_OLD_HTTP = frozenset({"0.9", "1.0"})
"""Clients no longer use these versions, but nginx before 1.30 does by default, for upstream connections."""


class RequestInfo(NamedTuple):
    """The facts about a request or handshake on which authentication depends."""

    headers: Headers
    scheme: str
    """`http` or `https`, also for a WebSocket."""
    client: str | None
    """The client's address; None on a Unix socket."""
    websocket: bool
    http_version: str = "1.1"

    @classmethod
    def from_scope(cls, scope: Mapping[str, Any]) -> RequestInfo:
        """Read the facts from an ASGI scope."""
        client = scope.get("client")
        secure = scope.get("scheme") in ("https", "wss")
        return cls(
            Headers(raw=list(scope["headers"])),
            "https" if secure else "http",
            client[0] if client else None,
            scope["type"] == "websocket",
            scope.get("http_version", "1.1"),
        )


class TokenVerifier(Protocol):
    """Verifies one kind of token."""

    def identify(self, token: str, /) -> Identity:
        """Return the user whom a token identifies, or raise `AuthError`."""
        ...


class Authenticator:
    """Decides who may use the host, and as which user."""

    def __init__(
        self,
        settings: AccessSettings,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time,
    ) -> None:
        self._loopback = is_loopback(settings.address)
        self._hosts = frozenset(settings.hosts)
        self._origins = frozenset(origin for text in settings.origins if (origin := parse_origin(text)))
        self._keys = ApiKeys(settings.keys)
        self._jwts: TokenVerifier | None = None
        if settings.jwt:
            from jackfield_host.security.jwt import JwtVerifier

            self._jwts = JwtVerifier(settings.jwt, environ, clock)
        self.requires_token = bool(settings.keys or settings.jwt)

    def authenticate(self, request: RequestInfo) -> Identity:
        """Return the user who sends a request; raise `AuthError` if the request is rejected."""
        self.check_origin(request)
        if not self.requires_token:
            self._check_local(request)
            if request.websocket and "origin" not in request.headers:
                raise AuthError("missing_origin")
            return LOCAL
        token = _token(request)
        if token.startswith(PREFIX):
            return self._keys.identify(token)
        if self._jwts is None:
            raise AuthError("bad_token")
        return self._jwts.identify(token)

    def check_origin(self, request: RequestInfo, page: bool = False) -> None:
        """Check the `Host` and `Origin` headers; other sites may link to a `page`."""
        own = self._check_host(request.headers)
        given = request.headers.getlist("origin")
        if not given:
            self._check_fetch_site(request.headers, page)
            return
        origin = parse_origin(given[0]) if len(given) == 1 else None
        if origin is None:
            raise AuthError("foreign_origin")
        own_origin = origin_at(request.scheme, own)
        # A page of this host opened as `localhost` may use it as `127.0.0.1`: same machine, same port.
        both_local = self._loopback and own.name in LOOPBACK_NAMES and origin.name in LOOPBACK_NAMES
        same_port = origin.port == own_origin.port
        if origin != own_origin and origin not in self._origins and not (both_local and same_port):
            raise AuthError("foreign_origin")

    def _check_host(self, headers: Headers) -> Authority:
        # DNS rebinding: another site can point its own name at this machine, but `Host` still has that name.
        given = headers.getlist("host")
        named = parse_authority(given[0]) if len(given) == 1 else None
        if named is None:
            raise AuthError("foreign_host")
        any_name = not self._loopback and not self._hosts
        if not (any_name or named.name in self._hosts or (self._loopback and named.name in LOOPBACK_NAMES)):
            raise AuthError("foreign_host")
        return named

    @staticmethod
    def _check_fetch_site(headers: Headers, page: bool) -> None:
        # Requests for images and scripts have no `Origin`, but browsers say that another site makes them.
        if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return
        linked = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if not (page and linked):
            raise AuthError("foreign_origin")

    @staticmethod
    def _check_local(request: RequestInfo) -> None:
        # A proxy on this machine makes every client look local, whatever address it forwards.
        remote = request.client is not None and not is_loopback(request.client)
        if remote or is_proxied(request.headers.keys(), request.http_version):
            raise AuthError("not_local")


def is_proxied(header_names: Iterable[str], http_version: str) -> bool:
    """Return whether a request shows signs of a proxy; header names are in lower case.

    This protects a host that requires no token because only its own machine can reach it: a proxy on that
    machine makes every client look local. A proxy that adds no header and speaks HTTP/1.1 is not recognised,
    because it sends exactly what a local client would send.
    """
    return http_version in _OLD_HTTP or any(map(_is_proxy_header, header_names))


@lru_cache(maxsize=256)
def _is_proxy_header(name: str) -> bool:
    """Return whether only proxies send a header; cached, because clients send the same few names."""
    return _PROXY_HEADERS.fullmatch(name) is not None


def accepted_subprotocol(headers: Headers) -> str | None:
    """Return the subprotocol to accept a WebSocket with: ours if it is offered, never a token."""
    return PROTOCOL if PROTOCOL in _subprotocols(headers) else None


def supports_protocol(headers: Headers) -> bool:
    """Return whether a client offers our subprotocol, or none besides a token."""
    offers = [offer for offer in _subprotocols(headers) if offer and not offer.startswith(TOKEN_PROTOCOL)]
    return PROTOCOL in offers or not offers


def _subprotocols(headers: Headers) -> list[str]:
    return [offer.strip() for line in headers.getlist("sec-websocket-protocol") for offer in line.split(",")]


def _token(request: RequestInfo) -> str:
    """Return the token of a request, from `Authorization` or from the subprotocols of a handshake."""
    found = {
        value.strip()
        for scheme, _, value in (
            line.strip().partition(" ") for line in request.headers.getlist("authorization")
        )
        if scheme.lower() == "bearer"
    }
    if request.websocket:
        offers = _subprotocols(request.headers)
        found |= {_decode_token(offer) for offer in offers if offer.startswith(TOKEN_PROTOCOL)}
    if not found:
        raise AuthError("missing_token")
    token = found.pop()
    # Two different tokens are rejected, because it is not clear which one counts.
    if found or not 0 < len(token) <= MAX_TOKEN or not token.isascii():
        raise AuthError("bad_token")
    return token


def _decode_token(offer: str) -> str:
    encoded = offer.removeprefix(TOKEN_PROTOCOL)
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True).decode(
            "ascii"
        )
    except (binascii.Error, ValueError):
        raise AuthError("bad_token") from None
