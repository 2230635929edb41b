"""What can go wrong between a client and its host, as sentences for the person in front of it."""

from __future__ import annotations

from jackfield.protocol.close_codes import CloseReason, NextStep


class ClientError(Exception):
    """A conversation could not begin, or cannot go on; its text says why and what can be done."""

    passing = False
    """Whether the same may well succeed in a moment."""

    retry_after: float | None = None
    """Seconds to wait before it is tried again, where the host has said so."""


class UnreachableError(ClientError):
    """Nobody answers at the address."""

    passing = True


class RefusedError(ClientError):
    """The host, or what stands in front of it, refused the handshake."""

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.passing = status in (408, 425, 429, 500, 502, 503, 504)


class TurnedAwayError(ClientError):
    """The host knows who asks, and does not give or does not keep the session."""

    def __init__(self, closing: CloseReason, message: str, retry_after: float | None = None) -> None:
        super().__init__(message or f"{closing.reason[:1].upper()}{closing.reason[1:]}.")
        self.closing = closing
        self.retry_after = retry_after
        self.passing = closing.next_step in (NextStep.RESUME_NOW, NextStep.RESUME_LATER)


class LostError(ClientError):
    """The connection was lost, and could not be had back in time; the session may still be resumed."""


class ProtocolError(ClientError):
    """The other side does not speak the host's protocol."""


class SessionOverError(ClientError):
    """Something was said in a session that is over."""
