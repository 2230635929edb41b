"""The end of a voice session that an intent asked for: not before what was promised has been heard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from jackfield.session.session import Session

from jackfield_sessions.ledger import Ledger

PATIENCE_SECONDS = 30.0
"""A model that was to say goodbye, and says nothing for so long, does not keep a session open."""

GRACE_SECONDS = 2.0
"""How much longer than it lasts speech may take to be heard, for a client that does not report."""


class Farewell:
    """Waits for the end of the turn and of the speech, then hangs up."""

    def __init__(self, session: Session, ledger: Ledger, hang_up: Callable[[], Awaitable[None]]) -> None:
        self._session = session
        self._ledger = ledger
        self._hang_up = hang_up
        self._turn_over = asyncio.Event()
        self._waiting: asyncio.Task[None] | None = None

    @property
    def asked(self) -> bool:
        """Whether an intent has asked for the end."""
        return "end" in self._session.changes

    @property
    def deaf(self) -> bool:
        """Whether the user is no longer listened to: who is shown the door cannot talk it shut."""
        return self._session.changes.get("end") == "farewell_spoken"

    def prepare(self) -> None:
        """Calls were answered: if one of them asked for the end, it comes even if the model falls silent."""
        if self.asked and self._waiting is None:
            self._turn_over.clear()
            self._waiting = asyncio.create_task(self._end())

    def turn_over(self) -> None:
        """The model has said what it had to say, or was cut short."""
        self._turn_over.set()

    def cancel(self) -> None:
        """The session ends in another way."""
        if self._waiting is not None and self._waiting is not asyncio.current_task():
            self._waiting.cancel()

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._turn_over.wait()
            async with asyncio.timeout(self._ledger.unheard_ms / 1000 + GRACE_SECONDS):
                await self._ledger.all_heard()
        except TimeoutError:
            pass
        await self._hang_up()
