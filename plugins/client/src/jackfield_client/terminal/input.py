"""The user's input: lines from standard input, and answers to confirmations."""

from __future__ import annotations

import asyncio
import codecs
import os
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from jackfield_client.messages import ConfirmationRequired, ConfirmationSettled, Message, is_outcome
from jackfield_client.session import ClientSession
from jackfield_client.terminal.screen import Screen

CHUNK_BYTES = 65_536
MAX_LINE_CHARACTERS = 65_536
"""Longer input without a newline is split into lines of this length."""

MAX_CONFIRMATIONS = 64
"""How many confirmations may wait; beyond that the oldest are left to expire."""

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}


class LineReader:
    """Reads lines from standard input: `async with LineReader() as lines:`.

    It uses no thread, because a thread that waits for a line cannot be cancelled.
    """

    def __init__(self, fd: int = 0) -> None:
        self.is_terminal = os.isatty(fd)
        """True if the input is a terminal."""
        self._fd = fd
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial = ""
        self._lines: deque[str] = deque()
        self._at_end = False
        self._watched = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unwatch()

    async def next(self) -> str | None:
        """Return the next line without its newline; None at the end of the input."""
        while not self._lines and not self._at_end:
            await self._wait_readable()
            self._feed(os.read(self._fd, CHUNK_BYTES))
        return self._lines.popleft() if self._lines else None

    def discard_typed_ahead(self) -> None:
        """Drop lines typed before a question: they cannot be its answer."""
        if self.is_terminal:
            self._lines.clear()

    async def _wait_readable(self) -> None:
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()

        def set_readable() -> None:
            if not readable.done():
                readable.set_result(None)

        try:
            loop.add_reader(self._fd, set_readable)
        except (NotImplementedError, OSError):
            # A regular file is always readable, and the event loop cannot watch it.
            return
        self._watched = True
        try:
            await readable
        finally:
            self._unwatch()

    def _unwatch(self) -> None:
        if self._watched:
            asyncio.get_running_loop().remove_reader(self._fd)
            self._watched = False

    def _feed(self, data: bytes) -> None:
        self._at_end = not data
        self._partial += self._decoder.decode(data, final=self._at_end)
        *lines, self._partial = self._partial.split("\n")
        self._lines.extend(line.removesuffix("\r") for line in lines)
        if self._at_end or len(self._partial) > MAX_LINE_CHARACTERS:
            if self._partial:
                self._lines.append(self._partial)
            self._partial = ""


class ConfirmationPrompt:
    """Asks the user about the calls that need confirmation, one after the other."""

    def __init__(
        self, session: ClientSession, screen: Screen, lines: LineReader | None, *, approve: bool
    ) -> None:
        self._session = session
        self._screen = screen
        self._lines = lines
        self._approve = approve
        self._waiting: dict[str, ConfirmationRequired] = {}

    def observe(self, message: Message) -> None:
        """Add the confirmations that the host requires, and drop those that are settled."""
        if isinstance(message, ConfirmationRequired):
            self._waiting[message.confirmation] = message
            while len(self._waiting) > MAX_CONFIRMATIONS:
                del self._waiting[next(iter(self._waiting))]
        elif isinstance(message, ConfirmationSettled) or is_outcome(message):
            self._waiting = {
                key: required
                for key, required in self._waiting.items()
                if required.call_id != message.call_id
            }

    async def ask_next(self, on_decision: Callable[[], None]) -> bool:
        """Ask about the next call and send the decision; return whether there was a call to ask about."""
        required = self._take()
        if required is None:
            return False
        self._screen.show(required.preview)
        approved = self._approve or await self._ask()
        on_decision()
        await (self._session.approve if approved else self._session.decline)(required.token)
        return True

    def _take(self) -> ConfirmationRequired | None:
        while self._waiting:
            required = self._waiting.pop(next(iter(self._waiting)))
            if required.expires_at > time.time():
                return required
        return None

    async def _ask(self) -> bool:
        if self._lines is None or not self._lines.is_terminal:
            self._screen.line(
                "Declined, because confirmation needs a terminal. Use --yes to approve automatically."
            )
            return False
        self._lines.discard_typed_ahead()
        while True:
            self._screen.prompt("Run it? [y/N]: ")
            answer = (await self._lines.next() or "").strip().lower()
            self._screen.prompt_answered()
            if answer in _ANSWERS:
                return _ANSWERS[answer]
            # Any other text is probably the next message: neither a yes nor a no.
            self._screen.line("Answer y to run it, or n to decline. Then you can continue typing.")
