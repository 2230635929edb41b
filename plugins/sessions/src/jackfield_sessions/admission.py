"""Access to sessions: bans, limits on new sessions, and tokens."""

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
    """The only session that the token is valid for; None for all sessions of the user."""
    mode: Mode | None = None
    """The only mode that the token is valid for; None for both."""
    expires: float | None = None
    """When the token expires, in seconds since 1970; None if it does not."""


class SessionRefused(Exception):  # noqa: N818 - a decision, not a fault
    """A client may not use the session that it requested."""

    def __init__(self, closing: CloseReason, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.closing = closing
        self.message = message
        self.retry_after = retry_after


def unknown_session() -> SessionRefused:
    """Return the refusal for a session that does not exist or belongs to another user."""
    return SessionRefused(UNKNOWN_SESSION, "There is no such session; it may be older than 24 hours.")


def check_access(session: Session, secret: str, identity: Identity, *, ended: bool = False) -> None:
    """Raise `SessionRefused` if a client may not use a session or, without `ended`, it has ended."""
    foreign = session.user != identity.user or identity.session not in (None, session.id)
    if foreign or not session.verify_secret(secret):
        raise unknown_session()
    if not (session.active or ended):
        raise SessionRefused(ENDED, "This session has ended; start a new one.")


class Admission:
    """Decides whether a user may open a session now."""

    def __init__(
        self, runtime: Runtime, live_sessions: Mapping[str, LiveSession], options: SessionOptions
    ) -> None:
        self.closed = False
        """True if no session may be opened, because the host is stopping."""
        self._runtime = runtime
        self._live_sessions = live_sessions
        self._options = options
        self._opening: Counter[str] = Counter()

    @property
    def opening(self) -> int:
        """Return how many sessions are being opened."""
        return self._opening.total()

    async def admit(self, identity: Identity) -> None:
        """Raise `SessionRefused` if a user may not open a session now."""
        await self.check_ban(identity)
        if self.closed:
            raise SessionRefused(RESTARTING, "The host is restarting; try again in a moment.")
        # A session that has ended does not count, even if its end is not recorded yet.
        live = sum(not each.ended for each in self._live_sessions.values())
        if live + self.opening >= self._options.max_sessions:
            raise SessionRefused(
                TOO_MANY_SESSIONS, "There are too many sessions at the moment; try again later."
            )
        if identity.session is not None:
            raise SessionRefused(
                UNKNOWN_SESSION, "This token is valid for one session only and cannot open another."
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
            self._opening += Counter()  # Removes users who are not opening a session.

    async def check_ban(self, identity: Identity) -> None:
        """Raise `SessionRefused` if a user is banned."""
        bans = self._runtime.capabilities.get("bans")
        seconds = await bans.remaining(identity.user) if bans is not None else 0.0
        if seconds > 0:
            raise SessionRefused(
                BANNED, f"You are banned for another {round(seconds + 0.5)} seconds.", retry_after=seconds
            )

    async def _evict_abandoned(self, user: str) -> None:
        """Close abandoned sessions of a user who has reached the limit."""
        mine = [each for each in self._live_sessions.values() if each.session.user == user]
        held = [each for each in mine if each.closing is None]
        over = len(held) + self._opening[user] - self._options.sessions_per_user + 1
        abandoned = sorted((each for each in held if each.is_abandoned), key=lambda each: each.left)
        if over > len(abandoned):
            raise SessionRefused(TOO_MANY_SESSIONS, "You have too many sessions; end one of them first.")
        for each in abandoned[: max(0, over)]:
            # It is saved; its client can resume it.
            await each.close(ABANDONED)
