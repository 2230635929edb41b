"""The filler: one response outside the conversation, which gives way to everything else.

The server cancels only responses of the conversation when the user speaks, and may run others side by side.
So whether a filler is heard, and when it has to end, is decided here.
"""

from __future__ import annotations

PATIENCE = 5.0
"""Seconds that an answer waits for a filler at most; one short sentence is generated in less than one."""


class Filler:
    """Follows the last filler that was asked for; times are the loop's."""

    def __init__(self) -> None:
        self._until: float | None = None
        self._response = ""
        self._sounds = False
        self._unwanted = False
        self._cancelled = False

    @property
    def deadline(self) -> float | None:
        """When the filler no longer holds up an answer, though its end was not told."""
        return self._until

    def ask(self, now: float) -> None:
        """A filler is asked for."""
        self._until, self._response = now + PATIENCE, ""
        self._sounds = self._unwanted = self._cancelled = False

    def is_under_way(self, now: float) -> bool:
        """Whether an answer has to wait."""
        if self._until is not None and now >= self._until:
            self._until = None
        return self._until is not None

    def began(self, response: str) -> None:
        """The server made the response."""
        self._response = response

    def owns(self, response: object) -> bool:
        """Whether a response is the filler."""
        return bool(self._response) and response == self._response

    def sound(self) -> bool:
        """A piece of sound has come; whether it should be heard."""
        self._sounds = self._sounds or not self._unwanted
        return not self._unwanted

    def give_way(self) -> None:
        """An answer is due: a filler that cannot be heard yet would only delay it."""
        self._unwanted = self._unwanted or not self._sounds

    def stop(self) -> None:
        """The user speaks, or wants silence."""
        self._unwanted = True

    def take_leave_to_cancel(self) -> str:
        """The response to cancel now, once; empty when there is none, or its id is not known yet."""
        if self._until is None or not self._unwanted or self._cancelled or not self._response:
            return ""
        self._cancelled = True
        return self._response

    def ended(self) -> None:
        """The response is over, or was refused."""
        self._until = None
