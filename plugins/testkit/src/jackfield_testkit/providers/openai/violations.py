"""What a client did against the protocol: told to it as OpenAI would, and to whoever wrote it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

CROSSING = frozenset({"response_cancel_not_active"})
"""What a correct client can meet, because its message and the server's crossed each other."""


class ProtocolViolationError(AssertionError):
    """A client broke the protocol."""


class Violations:
    """Collects what was wrong, unless it is allowed."""

    def __init__(self, allow: Collection[str] = ()) -> None:
        self._allow = CROSSING | set(allow)
        self.found: list[str] = []

    def note(self, code: str, message: str) -> None:
        """Keep a violation for the end of the test."""
        if code not in self._allow:
            self.found.append(f"{code}: {message}")

    def check(self) -> None:
        """Fail if there was any."""
        if self.found:
            raise ProtocolViolationError("the client broke the protocol: " + "; ".join(self.found))


def error_body(
    code: str, message: str, *, kind: str = "", param: str | None = None, event_id: str | None = None
) -> dict[str, Any]:
    """An error as OpenAI words it."""
    return {
        "type": kind or ("server_error" if code == "server_error" else "invalid_request_error"),
        "code": code,
        "message": message or code.replace("_", " "),
        "param": param,
        "event_id": event_id,
    }
