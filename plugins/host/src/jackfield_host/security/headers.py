"""Security headers on every HTTP response."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_POLICY: Mapping[str, str] = MappingProxyType(
    {
        "default-src": "'self'",
        "img-src": "'self' data: blob:",
        "media-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
)
"""Pages of the host may load their own files, and audio and images that they create."""

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Permissions-Policy": "microphone=(self), camera=(), geolocation=(), payment=(), usb=()",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
)
"""The headers of every response."""

YEAR = 31_536_000


class SecurityHeaders:
    """ASGI middleware that adds the security headers that a response does not set itself.

    A response that may be cached sets `Cache-Control` itself; all others must not be stored.
    """

    def __init__(self, app: ASGIApp, policy: Mapping[str, str] = MappingProxyType({})) -> None:
        self.app = app
        directives = {**CONTENT_POLICY, **policy}
        headers = {
            **HEADERS,
            "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in directives.items()),
            "Cache-Control": "no-store",
        }
        # Encoded once, because every response gets them.
        self._headers = _encoded(headers)
        self._secure = _encoded({**headers, "Strict-Transport-Security": f"max-age={YEAR}"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and add the headers to the response."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Browsers ignore the header over plain HTTP.
        added = self._secure if scope.get("scheme") == "https" else self._headers

        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = message.get("headers", ())
                names = {name.lower() for name, _ in given}
                message["headers"] = [*given, *(each for each in added if each[0] not in names)]
            await send(message)

        await self.app(scope, receive, add_headers)


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
