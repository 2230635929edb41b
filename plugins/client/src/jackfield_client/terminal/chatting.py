"""A text session at the terminal, turn by turn."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from jackfield_client.errors import ClientError
from jackfield_client.session import Session
from jackfield_client.terminal.decisions import Decisions
from jackfield_client.terminal.lines import Lines
from jackfield_client.terminal.screen import Screen
from jackfield_client.terminal.showing import Showing
from jackfield_client.terminal.turn import Turn

_T = TypeVar("_T")


class Chat:
    """Shows what the session tells, and says what the user writes."""

    def __init__(self, session: Session, lines: Lines, *, approve: bool) -> None:
        self._session = session
        self._lines = lines
        self._screen = Screen(prompting=lines.terminal)
        self._showing = Showing(self._screen, history=session.info.resumed)
        self._decisions = Decisions(session, self._screen, lines, approve=approve)
        self._turn = Turn()
        self._following: asyncio.Task[None]

    async def run(self) -> bool:
        """Hold the conversation until the lines end or the session does; whether every line was answered."""
        self._following = asyncio.create_task(self._follow())
        try:
            with self._interruptible():
                await self._take_turns()
        finally:
            if not self._following.done():
                self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following
        return not self._turn.failed

    async def _take_turns(self) -> None:
        if self._session.info.resumed:
            self._turn.begin(acknowledged=True)
            await self._while_it_lasts(self._turn.over.wait())
        while not self._following.done():
            if await self._while_it_lasts(self._decisions.next(self._turn.begin)):
                await self._while_it_lasts(self._turn.over.wait())
                continue
            self._screen.ask()
            line = await self._while_it_lasts(self._lines.next())
            self._screen.answered()
            if line is None:
                return
            if line.strip():
                await self._say(line.strip())

    async def _say(self, line: str) -> None:
        self._turn.begin()
        try:
            await self._session.say(line)
        except ValueError as error:
            self._screen.notice(f"Not sent: {error}.")
            self._turn.fail()
        await self._while_it_lasts(self._turn.over.wait())

    async def _follow(self) -> None:
        async for message in self._session:
            self._showing.show(message)
            self._decisions.see(message)
            self._turn.see(message)

    async def _while_it_lasts(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """Wait for something, or for the end of the session."""
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task, self._following}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            task.cancel()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let Ctrl-C end an answer; where none is being given, it says how to leave."""
        loop = asyncio.get_running_loop()
        interrupts: set[asyncio.Task[None]] = set()

        def interrupt() -> None:
            if self._turn.over.is_set():
                self._screen.line("(Ctrl-D ends the conversation)")
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
        # A session that is over at this moment has nothing to interrupt.
        with suppress(ClientError):
            await self._session.interrupt()
        if not self._session.connected:
            self._screen.line("(the host is away; Ctrl-D ends the conversation)")
            self._turn.over.set()
