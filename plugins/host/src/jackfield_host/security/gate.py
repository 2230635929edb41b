"""The gate: one decision for every request and every WebSocket handshake, before anything else happens."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Mapping
from time import time
from typing import Any, NamedTuple, Protocol

from jackfield.protocol import PROTOCOL
from jackfield_sessions.admission import Identity
from starlette.datastructures import Headers

from jackfield_host.security.identity import LOCAL, Refused
from jackfield_host.security.keys import PREFIX, KeyRing
from jackfield_host.security.origins import (
    LOOPBACK_NAMES,
    Authority,
    authority,
    is_loopback,
    origin,
    origin_at,
)
from jackfield_host.security.proxy_detection import came_through_proxy
from jackfield_host.settings import AccessSettings

TOKEN_PROTOCOL = "jackfield.token."  # noqa: S105 - how a token is announced, not one
"""What stands before a token, as base64url, among the subprotocols of a browser."""

MAX_TOKEN = 5120
"""Characters of a token: as base64url within the 8 KiB that a line of a handshake may have."""


class Arrival(NamedTuple):
    """What is known about somebody before they are let in."""

    headers: Headers
    scheme: str
    """`http` or `https`, also for a WebSocket."""
    client: str | None
    """The address they come from; None on a Unix socket."""
    websocket: bool
    http_version: str = "1.1"

    @classmethod
    def of(cls, scope: Mapping[str, Any]) -> Arrival:
        """The arrival of an ASGI scope."""
        client = scope.get("client")
        secure = scope.get("scheme") in ("https", "wss")
        return cls(
            Headers(raw=list(scope["headers"])),
            "https" if secure else "http",
            client[0] if client else None,
            scope["type"] == "websocket",
            scope.get("http_version", "1.1"),
        )


class Tokens(Protocol):
    """What can say whom a token stands for, or refuse it."""

    def identify(self, token: str, /) -> Identity:
        """Whom a token stands for."""
        ...


class Gate:
    """Decides who comes in."""

    def __init__(
        self,
        settings: AccessSettings,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time,
    ) -> None:
        self._loopback = is_loopback(settings.address)
        self._hosts = frozenset(settings.hosts)
        self._origins = frozenset(read for text in settings.origins if (read := origin(text)))
        self._keys = KeyRing(settings.keys)
        self._jwts: Tokens | None = None
        if settings.jwt:
            from jackfield_host.security.jwts import Jwts

            self._jwts = Jwts(settings.jwt, environ, clock)
        self.asks_for_token = bool(settings.keys or settings.jwt)
        """Whether nobody comes in without a token."""

    def admit(self, arrival: Arrival) -> Identity:
        """Who has arrived; raises `Refused` for somebody who may not come in."""
        self.screen(arrival)
        if not self.asks_for_token:
            self._check_local(arrival)
            if arrival.websocket and "origin" not in arrival.headers:
                raise Refused("missing_origin")
            return LOCAL
        token = _token(arrival)
        if token.startswith(PREFIX):
            return self._keys.identify(token)
        if self._jwts is None:
            raise Refused("bad_token")
        return self._jwts.identify(token)

    def screen(self, arrival: Arrival, page: bool = False) -> None:
        """Check names alone, for what is open to all; to a `page` links may lead from elsewhere."""
        named = self._host(arrival.headers)
        self._check_origin(arrival, named, page)

    def _host(self, headers: Headers) -> Authority:
        # A page elsewhere can point a name of its own at this machine; its `Host` still tells that name.
        given = headers.getlist("host")
        named = authority(given[0]) if len(given) == 1 else None
        if named is None:
            raise Refused("foreign_host")
        anybody = not self._loopback and not self._hosts
        if not (anybody or named.name in self._hosts or (self._loopback and named.name in LOOPBACK_NAMES)):
            raise Refused("foreign_host")
        return named

    def _check_origin(self, arrival: Arrival, named: Authority, page: bool) -> None:
        given = arrival.headers.getlist("origin")
        if not given:
            self._check_site(arrival.headers, page)
            return
        read = origin(given[0]) if len(given) == 1 else None
        if read is None:
            raise Refused("foreign_origin")
        own = origin_at(arrival.scheme, named)
        # A page of this host opened as `localhost` may use it as `127.0.0.1`: same machine, same port.
        neighbour = self._loopback and named.name in LOOPBACK_NAMES and read.name in LOOPBACK_NAMES
        if read != own and read not in self._origins and not (neighbour and read.port == own.port):
            raise Refused("foreign_origin")

    @staticmethod
    def _check_site(headers: Headers, page: bool) -> None:
        # Requests for images and scripts carry no origin, yet browsers tell that another site makes them.
        if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return
        followed = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if not (page and followed):
            raise Refused("foreign_origin")

    @staticmethod
    def _check_local(arrival: Arrival) -> None:
        # A proxy on this machine makes everybody look local, also when it says that they are.
        elsewhere = arrival.client is not None and not is_loopback(arrival.client)
        if elsewhere or came_through_proxy(arrival.headers.keys(), arrival.http_version):
            raise Refused("not_local")


def spoken(headers: Headers) -> str | None:
    """The subprotocol to accept a WebSocket with: ours where offered, never the one that holds a token."""
    return PROTOCOL if PROTOCOL in _protocols(headers) else None


def understood(headers: Headers) -> bool:
    """Whether a client speaks as we do: it offers our subprotocol, or none at all besides a token."""
    offers = [offer for offer in _protocols(headers) if offer and not offer.startswith(TOKEN_PROTOCOL)]
    return PROTOCOL in offers or not offers


def _protocols(headers: Headers) -> list[str]:
    return [offer.strip() for line in headers.getlist("sec-websocket-protocol") for offer in line.split(",")]


def _token(arrival: Arrival) -> str:
    found = {
        value.strip()
        for scheme, _, value in (
            line.strip().partition(" ") for line in arrival.headers.getlist("authorization")
        )
        if scheme.lower() == "bearer"
    }
    if arrival.websocket:
        offers = _protocols(arrival.headers)
        found |= {_unpacked(offer) for offer in offers if offer.startswith(TOKEN_PROTOCOL)}
    if not found:
        raise Refused("missing_token")
    token = found.pop()
    # Of two different tokens nobody can say which one counts.
    if found or not 0 < len(token) <= MAX_TOKEN or not token.isascii():
        raise Refused("bad_token")
    return token


def _unpacked(offer: str) -> str:
    packed = offer.removeprefix(TOKEN_PROTOCOL)
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True).decode(
            "ascii"
        )
    except (binascii.Error, ValueError):
        raise Refused("bad_token") from None
