"""What a client did that Gemini does not allow."""

from __future__ import annotations


class ProtocolViolationError(AssertionError):
    """A client broke the protocol."""


class Violations:
    """Collects them for the end of the test."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def note(self, message: str) -> None:
        """Keep one."""
        self.found.append(message)

    def check(self) -> None:
        """Fail if there was any."""
        if self.found:
            raise ProtocolViolationError("the client broke the protocol: " + "; ".join(self.found))
