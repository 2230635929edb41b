"""Whether the assistant owes an answer, told from the messages of the session."""

from __future__ import annotations

import asyncio

from jackfield_client.messages import (
    ChatMessage,
    ConfirmationSettled,
    ErrorMessage,
    Interrupted,
    Message,
    Notification,
    Resumed,
    TextDelta,
    TurnComplete,
)

IDLE = frozenset({"ready", "listening"})
"""States of a session in which nothing is under way."""


class Turn:
    """What one word of the user leads to."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        """Set while nothing is owed."""
        self.over.set()
        self.failed = False
        """Whether something was asked, and there was no answer."""
        self._acknowledged = False
        self._answered = False
        self._trouble = False

    def begin(self, *, acknowledged: bool = False) -> None:
        """The user says something; what is told before the host has taken it is about what was before."""
        self.over.clear()
        self._acknowledged = acknowledged
        self._answered = self._trouble = False

    def fail(self) -> None:
        """What the user wanted to say could not be said."""
        self._trouble = True
        self._end()

    def see(self, message: Message) -> None:
        """Follow the session."""
        match message:
            case ChatMessage(speaker="user") | ConfirmationSettled():
                self._acknowledged = True
            case ChatMessage() | TextDelta():
                self._answered = True
            case Notification():
                self._trouble = self._trouble or message.code != "working"
            case ErrorMessage():
                self.fail()
            case TurnComplete() | Interrupted() if self._acknowledged:
                self._end()
            case Resumed(resent=0) if message.state in IDLE:
                self._end()

    def _end(self) -> None:
        if not self.over.is_set():
            self.failed = self.failed or (self._trouble and not self._answered)
            self.over.set()
