"""One connection to a host: dialled, refused with a sentence, or open."""

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

from jackfield_client.errors import ClientError, ProtocolError, RefusedError, UnreachableError

OPEN_SECONDS = 15.0
LARGEST_MESSAGE = 4 * 1024 * 1024
"""No message of a host is longer: answers and results of tools are cut by it."""

FRAMES_AHEAD = 16
"""How many frames are read before somebody takes them; beyond that the host has to wait."""


LEFT = CloseReason("left", 1000, "this client has left", "", NextStep.DONE)
"""The client closed the connection itself; the session can be resumed."""

LOST = CloseReason("lost", 1006, "the connection was lost", "", NextStep.RESUME_LATER)
"""The connection ended without a close code, or with one that is not of the protocol."""

_BY_CODE = {reason.code: reason for reason in CLOSE_REASONS}

_SCHEMES = {"http": "ws", "ws": "ws", "https": "wss", "wss": "wss"}


class Address(NamedTuple):
    """A host that can be dialled."""

    base: str
    """As people know it, without a path of the protocol: `https://agent.example`."""
    origin: str
    """What a page of that host would name as its origin."""
    secure: bool
    loopback: bool

    def socket(self, mode: str) -> str:
        """The address of the WebSocket of a mode."""
        scheme, _, rest = self.base.partition("://")
        return f"{_SCHEMES[scheme]}://{rest}/ws/{mode}"


Token = str | Callable[[], Awaitable[str]] | None
"""What says who the user is: a token, or what gets a fresh one for each connection."""


class DialOptions(NamedTuple):
    """How a host is reached."""

    address: Address
    mode: str
    token: Token = None
    ssl: tls.SSLContext | None = None


class _Straight(connect):
    """A handshake that is sent nowhere else: its token is for the host that was named."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def dial(dialling: DialOptions) -> ClientConnection:
    """Open a WebSocket to a host; `ClientError` says why there is none."""
    address = dialling.address
    token = await dialling.token() if callable(dialling.token) else dialling.token
    headers = {"Authorization": f"Bearer {token}"} if token else None
    more: dict[str, Any] = {"ssl": dialling.ssl} if dialling.ssl and address.secure else {}
    try:
        line = await _Straight(
            address.socket(dialling.mode),
            origin=Origin(address.origin),
            subprotocols=[Subprotocol(PROTOCOL)],
            additional_headers=headers,
            compression=None,
            proxy=None if address.loopback else True,
            open_timeout=OPEN_SECONDS,
            close_timeout=2.0,
            max_size=LARGEST_MESSAGE,
            max_queue=FRAMES_AHEAD,
            **more,
        )
    except (OSError, WebSocketException) as error:
        raise _explained(error, address) from None
    if line.subprotocol != PROTOCOL:
        await line.close()
        raise ProtocolError(f"What answers at {address.base} does not speak {PROTOCOL}; it is no host.")
    return line


def _explained(error: Exception, address: Address) -> ClientError:
    if isinstance(error, InvalidStatus):
        return _refused(error.response, address)
    if isinstance(error, tls.SSLError):
        reason = getattr(error, "verify_message", "") or error.reason or "the handshake failed"
        return UnreachableError(f"No secure connection to {address.base}: {reason}.")
    if isinstance(error, ConnectionRefusedError):
        return UnreachableError(
            f"Nothing listens at {address.base}; start a host with `jackfield serve`, or check the port."
        )
    if isinstance(error, TimeoutError):
        return UnreachableError(f"{address.base} does not answer within {OPEN_SECONDS:.0f} seconds.")
    if isinstance(error, InvalidHandshake):
        return UnreachableError(f"What listens at {address.base} did not answer as a host does.")
    what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UnreachableError(f"{address.base} cannot be reached: {what}.")


def _refused(response: Response, address: Address) -> RefusedError:
    said = _error_of(response.body)
    status = response.status_code
    after = response.headers.get("Retry-After", "")
    message = str(said.get("message") or "") or _of_status(status, address)
    return RefusedError(
        status, str(said.get("code") or ""), message, float(after) if after.isdigit() else None
    )


def _of_status(status: int, address: Address) -> str:
    if status in (301, 302, 303, 307, 308):
        return f"{address.base} sends elsewhere ({status}); give the address of the host itself."
    if status == 404:
        return f"What answers at {address.base} is no host, or the host is under another path (404)."
    return f"{address.base} refused the connection ({status})."


def _error_of(body: bytes | None) -> Mapping[str, Any]:
    try:
        value = orjson.loads(body or b"")
    except orjson.JSONDecodeError:
        return {}
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, dict) else {}


def close_reason(code: int | None) -> CloseReason:
    """What a close code means."""
    return _BY_CODE.get(code or LOST.code, LOST)


def parse_address(text: str) -> Address:
    """A host's address as people write it; `ValueError` says what is wrong with it."""
    parts = urlsplit(text if "://" in text else f"http://{text}")
    name = parts.hostname
    try:
        port = parts.port
    except ValueError:
        raise ValueError(f"{text!r} has a port that is no port; a host looks like {_EXAMPLE}") from None
    if parts.scheme not in _SCHEMES or not name or parts.query or parts.fragment:
        raise ValueError(f"{text!r} is not the address of a host; one looks like {_EXAMPLE}")
    if parts.username is not None:
        raise ValueError("an address carries no name or password; give a token instead")
    secure = _SCHEMES[parts.scheme] == "wss"
    scheme = "https" if secure else "http"
    shown = f"[{name}]" if ":" in name else name
    authority = f"{scheme}://{shown}" + (f":{port}" if port and port != (443 if secure else 80) else "")
    path = parts.path.rstrip("/")
    for mode in ("/ws/text", "/ws/voice"):
        path = path.removesuffix(mode)
    return Address(authority + path, authority, secure, _is_loopback(name))


_EXAMPLE = "http://127.0.0.1:8765 or https://agent.example"


def _is_loopback(name: str) -> bool:
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
