"""Host addresses, and the WebSocket handshake with errors that say what went wrong."""

from __future__ import annotations

import ipaddress
import ssl as tls
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
from jackfield.protocol import PROTOCOL
from jackfield.protocol.close_codes import CLOSE_REASONS, CloseReason, NextStep
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException
from websockets.http11 import Response
from websockets.typing import Origin, Subprotocol

from jackfield_client.errors import ClientError, HandshakeError, HostUnreachableError, ProtocolError

OPEN_SECONDS = 15.0
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
"""No message from a host is longer: the host truncates answers and tool results."""

MAX_QUEUED_FRAMES = 16
"""How many frames are read ahead; beyond that the host has to wait."""


CLIENT_CLOSED = CloseReason("client_closed", 1000, "the client closed the connection", "", NextStep.DONE)
"""The client closed the connection itself; the session can be resumed."""

CONNECTION_LOST = CloseReason("connection_lost", 1006, "the connection was lost", "", NextStep.RESUME_LATER)
"""The connection ended without a close code, or with one that the protocol does not define."""

_BY_CODE = {reason.code: reason for reason in CLOSE_REASONS}

_SCHEMES = {"http": "ws", "ws": "ws", "https": "wss", "wss": "wss"}


class HostAddress(NamedTuple):
    """The address of a host."""

    base: str
    """The URL without the protocol's paths: `https://agent.example`."""
    origin: str
    """The `Origin` header of a page that this host serves."""
    secure: bool
    loopback: bool

    def socket(self, mode: str) -> str:
        """Return the URL of the WebSocket for a mode."""
        scheme, _, rest = self.base.partition("://")
        return f"{_SCHEMES[scheme]}://{rest}/ws/{mode}"


Token = str | Callable[[], Awaitable[str]] | None
"""Authenticates the user: a token, or a coroutine function that returns a new one for each connection."""


class DialOptions(NamedTuple):
    """How the client connects to a host."""

    address: HostAddress
    mode: str
    token: Token = None
    ssl: tls.SSLContext | None = None


class _ConnectWithoutRedirect(connect):
    """A handshake that follows no redirects: the token is only for the given host."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def dial(options: DialOptions) -> ClientConnection:
    """Open a WebSocket to a host; raises `ClientError` with the reason if that fails."""
    address = options.address
    token = await options.token() if callable(options.token) else options.token
    headers = {"Authorization": f"Bearer {token}"} if token else None
    tls_options: dict[str, Any] = {"ssl": options.ssl} if options.ssl and address.secure else {}
    try:
        socket = await _ConnectWithoutRedirect(
            address.socket(options.mode),
            origin=Origin(address.origin),
            subprotocols=[Subprotocol(PROTOCOL)],
            additional_headers=headers,
            compression=None,
            proxy=None if address.loopback else True,
            open_timeout=OPEN_SECONDS,
            close_timeout=2.0,
            max_size=MAX_MESSAGE_BYTES,
            max_queue=MAX_QUEUED_FRAMES,
            **tls_options,
        )
    except (OSError, WebSocketException) as error:
        raise _describe_failure(error, address) from None
    if socket.subprotocol != PROTOCOL:
        await socket.close()
        raise ProtocolError(
            f"The server at {address.base} does not speak {PROTOCOL}; it is not a Jackfield host."
        )
    return socket


def _describe_failure(error: Exception, address: HostAddress) -> ClientError:
    if isinstance(error, InvalidStatus):
        return _handshake_error(error.response, address)
    if isinstance(error, tls.SSLError):
        reason = getattr(error, "verify_message", "") or error.reason or "the handshake failed"
        return HostUnreachableError(f"The secure connection to {address.base} failed: {reason}.")
    if isinstance(error, ConnectionRefusedError):
        return HostUnreachableError(
            f"No server is listening at {address.base}. "
            "Start a host with `jackfield serve`, or check the port."
        )
    if isinstance(error, TimeoutError):
        return HostUnreachableError(
            f"{address.base} did not answer within {OPEN_SECONDS:.0f} seconds. "
            "Check the address and that the host is running, then try again."
        )
    if isinstance(error, InvalidHandshake):
        return HostUnreachableError(
            f"The server at {address.base} did not answer with a WebSocket handshake. "
            "Check the address, and that proxies in front of the host forward WebSocket connections."
        )
    cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return HostUnreachableError(f"{address.base} cannot be reached: {cause}.")


def _handshake_error(response: Response, address: HostAddress) -> HandshakeError:
    error = _error_in(response.body)
    status = response.status_code
    after = response.headers.get("Retry-After", "")
    message = str(error.get("message") or "") or _status_message(status, address)
    return HandshakeError(
        status, str(error.get("code") or ""), message, float(after) if after.isdigit() else None
    )


def _status_message(status: int, address: HostAddress) -> str:
    if status in (301, 302, 303, 307, 308):
        return f"{address.base} redirects ({status}); use the host's own address."
    if status == 404:
        return (
            f"The server at {address.base} is not a Jackfield host, or the host is at a different path (404)."
        )
    return f"{address.base} rejected the connection ({status}); see the log of the host or its proxy."


def _error_in(body: bytes | None) -> Mapping[str, Any]:
    try:
        value = orjson.loads(body or b"")
    except orjson.JSONDecodeError:
        return {}
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, dict) else {}


def close_reason(code: int | None) -> CloseReason:
    """Return the reason for a close code."""
    return _BY_CODE.get(code or CONNECTION_LOST.code, CONNECTION_LOST)


def parse_address(text: str) -> HostAddress:
    """Parse a host's address as users write it; raises `ValueError` with the problem."""
    parts = urlsplit(text if "://" in text else f"http://{text}")
    name = parts.hostname
    try:
        port = parts.port
    except ValueError:
        raise ValueError(f"{text!r} has an invalid port; use an address like {_EXAMPLE}") from None
    if parts.scheme not in _SCHEMES or not name or parts.query or parts.fragment:
        raise ValueError(f"{text!r} is not the address of a host; use one like {_EXAMPLE}")
    if parts.username is not None:
        raise ValueError("an address cannot contain a user name or password; use a token instead")
    secure = _SCHEMES[parts.scheme] == "wss"
    scheme = "https" if secure else "http"
    shown = f"[{name}]" if ":" in name else name
    authority = f"{scheme}://{shown}" + (f":{port}" if port and port != (443 if secure else 80) else "")
    path = parts.path.rstrip("/")
    for mode in ("/ws/text", "/ws/voice"):
        path = path.removesuffix(mode)
    return HostAddress(authority + path, authority, secure, _is_loopback(name))


_EXAMPLE = "http://127.0.0.1:8765 or https://agent.example"


def _is_loopback(name: str) -> bool:
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
