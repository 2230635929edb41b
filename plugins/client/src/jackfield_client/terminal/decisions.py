"""What waits for the user's word: shown as the host previews it, asked, and passed on."""

from __future__ import annotations

import time
from collections.abc import Callable

from jackfield_client.messages import ConfirmationRequired, ConfirmationSettled, Message, is_outcome
from jackfield_client.session import Session
from jackfield_client.terminal.lines import Lines
from jackfield_client.terminal.screen import Screen

MOST = 64
"""How many calls wait; of more than that the oldest are left to expire."""

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}


class Decisions:
    """The calls that the user has to decide about, one after the other."""

    def __init__(self, session: Session, screen: Screen, lines: Lines | None, *, approve: bool) -> None:
        self._session = session
        self._screen = screen
        self._lines = lines
        self._approve = approve
        self._waiting: dict[str, ConfirmationRequired] = {}

    def see(self, message: Message) -> None:
        """Follow the session."""
        if isinstance(message, ConfirmationRequired):
            self._waiting[message.confirmation] = message
            while len(self._waiting) > MOST:
                del self._waiting[next(iter(self._waiting))]
        elif isinstance(message, ConfirmationSettled) or is_outcome(message):
            self._waiting = {
                key: card for key, card in self._waiting.items() if card.call_id != message.call_id
            }

    async def next(self, decided: Callable[[], None]) -> bool:
        """Ask about the next call, and pass the answer on; whether there was one."""
        card = self._take()
        if card is None:
            return False
        self._screen.show(card.preview)
        agreed = self._approve or await self._agreed()
        decided()
        await (self._session.approve if agreed else self._session.decline)(card.token)
        return True

    def _take(self) -> ConfirmationRequired | None:
        while self._waiting:
            card = self._waiting.pop(next(iter(self._waiting)))
            if card.expires_at > time.time():
                return card
        return None

    async def _agreed(self) -> bool:
        if self._lines is None or not self._lines.terminal:
            self._screen.line("Declined: this needs a person's word at a terminal, or --yes.")
            return False
        self._lines.forget()
        while True:
            self._screen.ask("Run it? [y/N]: ")
            answer = (await self._lines.next() or "").strip().lower()
            self._screen.answered()
            if answer in _ANSWERS:
                return _ANSWERS[answer]
            # A sentence was hardly meant as a no, and is never a yes.
            self._screen.line("Answer y to run it, or n; then write on.")
