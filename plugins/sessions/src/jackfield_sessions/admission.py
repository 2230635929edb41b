"""Who may use which session: bans, the room for new sessions, and tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from jackfield.contract.context import Mode
from jackfield.protocol.close_codes import (
    ABANDONED,
    BANNED,
    ENDED,
    RESTARTING,
    TOO_MANY_SESSIONS,
    UNKNOWN_SESSION,
    CloseReason,
)
from jackfield.runtime import Runtime
from jackfield.session.session import Session

from jackfield_sessions.live_session import LiveSession
from jackfield_sessions.options import SessionOptions


class Identity(NamedTuple):
    """An authenticated user."""

    user: str
    roles: frozenset[str] = frozenset()
    session: str | None = None
    """The only session the token is good for; None where it is good for all of the user's."""
    mode: Mode | None = None
    """The only mode the token is good for; None where it is good for both."""
    expires: float | None = None
    """When the token ends, in seconds since 1970; None where it does not."""


class SessionRefused(Exception):  # noqa: N818 - a decision, not a fault
    """A client cannot have the session it asks for."""

    def __init__(self, closing: CloseReason, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.closing = closing
        self.message = message
        self.retry_after = retry_after


def unknown_session() -> SessionRefused:
    """The refusal for a session that does not exist, and for one of another user."""
    return SessionRefused(UNKNOWN_SESSION, "There is no such session; it may be older than 24 hours.")


def check_access(session: Session, secret: str, identity: Identity, *, ended: bool = False) -> None:
    """Refuse a client that may not use a session; without `ended` also one that has ended."""
    foreign = session.user != identity.user or identity.session not in (None, session.id)
    if foreign or not session.verify_secret(secret):
        raise unknown_session()
    if not (session.active or ended):
        raise SessionRefused(ENDED, "This session has ended; begin a new one.")


class Admission:
    """Decides who may begin a session now."""

    def __init__(
        self, runtime: Runtime, live_sessions: Mapping[str, LiveSession], options: SessionOptions
    ) -> None:
        self.closed = False
        """Whether no session may begin, because the host is about to stop."""
        self._runtime = runtime
        self._live_sessions = live_sessions
        self._options = options
        self._opening: Counter[str] = Counter()

    @property
    def opening(self) -> int:
        """How many sessions are being opened."""
        return self._opening.total()

    async def admit(self, identity: Identity) -> None:
        """Refuse a user who may not begin a session now."""
        await self.check_ban(identity)
        if self.closed:
            raise SessionRefused(RESTARTING, "The host is restarting; try again in a moment.")
        # A session that has ended takes no room, even if its end is still to be recorded.
        live = sum(not each.ended for each in self._live_sessions.values())
        if live + self.opening >= self._options.max_sessions:
            raise SessionRefused(
                TOO_MANY_SESSIONS, "There are too many sessions at the moment; try again later."
            )
        if identity.session is not None:
            raise SessionRefused(
                UNKNOWN_SESSION, "This token is good for one session alone, and opens no other."
            )
        await self._evict_abandoned(identity.user)

    @contextmanager
    def reserve_slot(self, user: str) -> Iterator[None]:
        """Count a session that is being opened."""
        self._opening[user] += 1
        try:
            yield
        finally:
            self._opening[user] -= 1
            self._opening += Counter()  # Drops users who open nothing.

    async def check_ban(self, identity: Identity) -> None:
        """Refuse a user who is banned, and say for how long."""
        bans = self._runtime.capabilities.get("bans")
        seconds = await bans.remaining(identity.user) if bans is not None else 0.0
        if seconds > 0:
            raise SessionRefused(
                BANNED, f"You are banned for another {round(seconds + 0.5)} seconds.", retry_after=seconds
            )

    async def _evict_abandoned(self, user: str) -> None:
        """Close abandoned sessions of a user who has as many sessions as allowed."""
        mine = [each for each in self._live_sessions.values() if each.session.user == user]
        held = [each for each in mine if each.closing is None]
        over = len(held) + self._opening[user] - self._options.sessions_per_user + 1
        abandoned = sorted((each for each in held if each.is_abandoned), key=lambda each: each.left)
        if over > len(abandoned):
            raise SessionRefused(TOO_MANY_SESSIONS, "You have too many sessions; end one of them first.")
        for each in abandoned[: max(0, over)]:
            # It is saved, and a client that comes back resumes it.
            await each.close(ABANDONED)
