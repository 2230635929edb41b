"""One connection to a host: dialled, refused with a sentence, or open."""

from __future__ import annotations

import ssl as tls
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException
from websockets.http11 import Response
from websockets.typing import Origin, Subprotocol

from jackfield_client.address import Address
from jackfield_client.errors import ClientError, ProtocolError, RefusedError, UnreachableError
from jackfield_client.wire import PROTOCOL

OPEN_SECONDS = 15.0
LARGEST_MESSAGE = 4 * 1024 * 1024
"""No message of a host is longer: answers and results of tools are cut by it."""

FRAMES_AHEAD = 16
"""How many frames are read before somebody takes them; beyond that the host has to wait."""


Token = str | Callable[[], Awaitable[str]] | None
"""What says who the user is: a token, or what gets a fresh one for each connection."""


class Dialling(NamedTuple):
    """How a host is reached."""

    address: Address
    mode: str
    token: Token = None
    ssl: tls.SSLContext | None = None


class _Straight(connect):
    """A handshake that is sent nowhere else: its token is for the host that was named."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def dial(dialling: Dialling) -> ClientConnection:
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
