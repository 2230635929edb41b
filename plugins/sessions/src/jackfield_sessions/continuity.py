"""What makes a conversation go on when connections do not: renewal, restoration, and asking again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from jackfield.transport.events import Trouble
from jackfield.transport.protocol import Connection, Opening, Transport, TransportError, Utterance
from jackfield.transport.troubles import TROUBLES

from jackfield_sessions.journal import Journal
from jackfield_sessions.line import Line
from jackfield_sessions.memory import Summarise

_log = logging.getLogger(__name__)

GO_ON = "The last answer did not reach the user. Go on from what is known, and answer now."

RETRY_SECONDS = (1.0, 3.0, 8.0)
"""How long to wait before an answer is asked for again that the provider failed to give."""

MARGIN_SECONDS = 2.0
"""A renewal that could not wait for a quiet moment begins so long before the provider's own end."""


class Continuity:
    """Keeps a line to the model, and knows what the model still owes the user."""

    def __init__(
        self,
        line: Line,
        journal: Journal,
        summarise: Summarise,
        notice: Callable[[str], Awaitable[None]],
    ) -> None:
        self.line = line
        self.working = 0
        """How many messages' calls are being run; their results bring the answer."""
        self.quiet = asyncio.Event()
        self.quiet.set()
        self._journal = journal
        self._memory = journal.memory
        self._summarise = summarise
        self._notice = notice
        self._renewal: asyncio.Task[None] | None = None
        self._retry: asyncio.Task[None] | None = None
        self._retries = 0

    @classmethod
    async def begin(
        cls,
        transport: Transport,
        opening: Callable[[tuple[Utterance, ...], str | None], Opening],
        journal: Journal,
        summarise: Summarise,
        notice: Callable[[str], Awaitable[None]],
    ) -> Continuity:
        """Reach the model for the first time."""

        def now(resume: str | None) -> Opening:
            # A question that is asked again must not be told as something past.
            memory = journal.memory
            asked_again = journal.owed and memory.awaits_answer
            return opening(memory.said[:-1] if asked_again else memory.said, resume)

        return cls(await Line.open(transport, now), journal, summarise, notice)

    @property
    def owed(self) -> bool:
        """Whether an answer is due."""
        return self._journal.owed

    @owed.setter
    def owed(self, due: bool) -> None:
        self._journal.owed = due

    async def connection(self) -> Connection:
        """The connection that stands; while there is none, wait for it."""
        return await self.line.connection()

    def answered(self) -> None:
        """The model has given what it owed."""
        self.owed, self._retries = False, 0
        self._journal.submission = None
        self.quiet.set()

    async def broke(self, event: Trouble) -> None:
        """The line is about to be restored: a provider session that ended took its memory along."""
        if TROUBLES[event.code].remedy == "renew":
            await self._memory.condense(self._summarise)

    async def trouble(self, event: Trouble) -> bool:
        """Do what a trouble calls for while the connection stands; whether an answer may still come."""
        kind = TROUBLES[event.code]
        if kind.remedy == "renew":
            self.plan_renewal(event.code, 0)
            return True
        if kind.recoverable and self.owed and self._retries < len(RETRY_SECONDS):
            pause, self._retries = RETRY_SECONDS[self._retries], self._retries + 1
            self._retry = asyncio.create_task(self._ask_after(pause))
            return True
        return False

    def plan_renewal(self, code: str, seconds: float) -> asyncio.Task[None]:
        """Renew within so many seconds; once is enough, however often it is asked for."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(code, seconds))
        return self._renewal

    async def ask_again(self) -> bool:
        """Ask the connection that stands now for what the last one owed; whether there was something."""
        if not self.owed or self.working:
            return False
        connection = await self.connection()
        if self._memory.awaits_answer and self._journal.submission is not None:
            await self._journal.submission.send(connection)
        elif self._memory.awaits_answer:
            await connection.send_text(self._memory.said[-1].text)
        else:
            await connection.send_context(GO_ON, respond=True)
        return True

    async def end(self) -> None:
        """Hang up, and do nothing more."""
        for task in (self._renewal, self._retry):
            if task is not None:
                task.cancel()
        await self.line.hang_up()

    async def _ask_after(self, pause: float) -> None:
        await asyncio.sleep(pause)
        if self.owed:
            await (await self.connection()).send_context(GO_ON, respond=True)

    async def renew(self) -> None:
        """Go on in a new connection, with a summary, the last turns, and what was still owed."""
        await self._memory.condense(self._summarise)
        await self.line.renew()
        await self.ask_again()

    async def _renew(self, code: str, seconds: float) -> None:
        """Go on in a new connection, when nothing is under way or when it cannot wait any longer."""
        try:
            async with asyncio.timeout(max(0.0, seconds - MARGIN_SECONDS)):
                await self.quiet.wait()
        except TimeoutError:
            _log.info("the line is renewed while something is under way")
        try:
            await self.renew()
        except TransportError as error:
            # The old connection still stands; when it ends, the line is restored as after any break.
            _log.warning("the line could not be renewed: %s", error)
            return
        if code == "going_away":
            await self._notice(code)
