"""A text session at the terminal: sends the user's lines and waits for each answer."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from jackfield_client.errors import ClientError
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
from jackfield_client.session import ClientSession
from jackfield_client.terminal.input import ConfirmationPrompt, LineReader
from jackfield_client.terminal.screen import MessagePrinter, Screen

IDLE_STATES = frozenset({"ready", "listening"})
"""States of a session in which no answer is in progress."""

_T = TypeVar("_T")


class TextChat:
    """Prints the messages of a session, and sends the lines that the user types."""

    def __init__(self, session: ClientSession, lines: LineReader, *, approve: bool) -> None:
        self._session = session
        self._lines = lines
        self._screen = Screen(prompting=lines.is_terminal)
        self._printer = MessagePrinter(self._screen, history=session.info.resumed)
        self._confirmations = ConfirmationPrompt(session, self._screen, lines, approve=approve)
        self._turn = TurnTracker()
        self._receiver: asyncio.Task[None]

    async def run(self) -> bool:
        """Chat until the input or the session ends; return whether every line was answered."""
        self._receiver = asyncio.create_task(self._receive())
        try:
            with self._handle_interrupts():
                await self._take_turns()
        finally:
            if not self._receiver.done():
                self._receiver.cancel()
            with suppress(asyncio.CancelledError):
                await self._receiver
        return not self._turn.failed

    async def _take_turns(self) -> None:
        if self._session.info.resumed:
            self._turn.start(acknowledged=True)
            await self._while_open(self._turn.done.wait())
        while not self._receiver.done():
            if await self._while_open(self._confirmations.ask_next(self._turn.start)):
                await self._while_open(self._turn.done.wait())
                continue
            self._screen.prompt()
            line = await self._while_open(self._lines.next())
            self._screen.prompt_answered()
            if line is None:
                return
            if line.strip():
                await self._send(line.strip())

    async def _send(self, line: str) -> None:
        self._turn.start()
        try:
            await self._session.send_text(line)
        except ValueError as error:
            self._screen.notice(f"Not sent: {error}.")
            self._turn.fail()
        await self._while_open(self._turn.done.wait())

    async def _receive(self) -> None:
        async for message in self._session:
            self._printer.print(message)
            self._confirmations.observe(message)
            self._turn.observe(message)

    async def _while_open(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """Wait for the work and return its result; None if the session ends first."""
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task, self._receiver}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            task.cancel()

    @contextmanager
    def _handle_interrupts(self) -> Iterator[None]:
        """Let Ctrl-C interrupt an answer; if there is none, show how to quit."""
        loop = asyncio.get_running_loop()
        interrupts: set[asyncio.Task[None]] = set()

        def interrupt() -> None:
            if self._turn.done.is_set():
                self._screen.line("(press Ctrl-D to quit)")
            else:
                interrupts.add(loop.create_task(self._interrupt()))

        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGINT)

    async def _interrupt(self) -> None:
        # The session may have closed at this moment.
        with suppress(ClientError):
            await self._session.interrupt()
        if not self._session.connected:
            self._screen.line("(the host is not reachable; press Ctrl-D to quit)")
            self._turn.done.set()


class TurnTracker:
    """Tracks from the session's messages whether an answer is still expected."""

    def __init__(self) -> None:
        self.done = asyncio.Event()
        """Set while no answer is expected."""
        self.done.set()
        self.failed = False
        """True if a message from the user got no answer."""
        self._acknowledged = False
        self._answered = False
        self._has_error = False

    def start(self, *, acknowledged: bool = False) -> None:
        """Expect an answer; messages before the acknowledgement still belong to the previous turn."""
        self.done.clear()
        self._acknowledged = acknowledged
        self._answered = self._has_error = False

    def fail(self) -> None:
        """End the turn with an error."""
        self._has_error = True
        self._end()

    def observe(self, message: Message) -> None:
        """Update the state from one of the session's messages."""
        match message:
            case ChatMessage(speaker="user") | ConfirmationSettled():
                self._acknowledged = True
            case ChatMessage() | TextDelta():
                self._answered = True
            case Notification():
                self._has_error = self._has_error or message.code != "working"
            case ErrorMessage():
                self.fail()
            case TurnComplete() | Interrupted() if self._acknowledged:
                self._end()
            case Resumed(resent=0) if message.state in IDLE_STATES:
                self._end()

    def _end(self) -> None:
        if not self.done.is_set():
            self.failed = self.failed or (self._has_error and not self._answered)
            self.done.set()
