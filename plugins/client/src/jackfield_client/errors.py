"""Client errors; their texts are written for the user."""

from __future__ import annotations

from jackfield.protocol.close_codes import CloseReason, NextStep


class ClientError(Exception):
    """A session could not start or cannot continue; the text says why and what to do."""

    transient = False
    """True if the same attempt may succeed in a moment."""

    retry_after: float | None = None
    """Seconds to wait before the next attempt, if the host named a time."""


class HostUnreachableError(ClientError):
    """No host answers at the address."""

    transient = True


class HandshakeError(ClientError):
    """The host, or a proxy in front of it, rejected the WebSocket handshake."""

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.transient = status in (408, 425, 429, 500, 502, 503, 504)


class SessionRejectedError(ClientError):
    """The host rejected the start or the resumption of the session."""

    def __init__(self, close_reason: CloseReason, message: str, retry_after: float | None = None) -> None:
        reason = close_reason.reason
        super().__init__(message or f"{reason[:1].upper()}{reason[1:]}.")
        self.close_reason = close_reason
        self.retry_after = retry_after
        self.transient = close_reason.next_step in (NextStep.RESUME_NOW, NextStep.RESUME_LATER)


class ConnectionLostError(ClientError):
    """The client could not reconnect in time; the session may still be resumed."""


class ProtocolError(ClientError):
    """The server does not follow the host's protocol."""


class SessionClosedError(ClientError):
    """The session is closed, so nothing can be sent."""
