"""Who may have which session: bans, room, and tokens that fit."""

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

from jackfield_sessions.options import SessionOptions
from jackfield_sessions.talk import Talk


class Identity(NamedTuple):
    """Somebody the gate has let in."""

    user: str
    roles: frozenset[str] = frozenset()
    session: str | None = None
    """The only session the token is good for; None where it is good for all of the user's."""
    mode: Mode | None = None
    """The only mode the token is good for; None where it is good for both."""
    expires: float | None = None
    """When the token ends, in seconds since 1970; None where it does not."""


class TurnedAwayError(Exception):
    """A client cannot have the session it asks for."""

    def __init__(self, closing: CloseReason, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.closing = closing
        self.message = message
        self.retry_after = retry_after


def unknown() -> TurnedAwayError:
    """The answer to everybody who asks for a session that is not there, or not theirs."""
    return TurnedAwayError(UNKNOWN_SESSION, "There is no such session; it may be older than 24 hours.")


def check(session: Session, secret: str, identity: Identity, *, ended: bool = False) -> None:
    """Turn away who may not use a session; one that has ended is used only where that will do."""
    foreign = session.user != identity.user or identity.session not in (None, session.id)
    if foreign or not session.admits(secret):
        raise unknown()
    if not (session.active or ended):
        raise TurnedAwayError(ENDED, "This session has ended; begin a new one.")


class Admission:
    """Decides who may begin a session now."""

    def __init__(self, runtime: Runtime, talks: Mapping[str, Talk], options: SessionOptions) -> None:
        self.closed = False
        """Whether nobody new is let in, because the host is about to stop."""
        self._runtime = runtime
        self._talks = talks
        self._options = options
        self._opening: Counter[str] = Counter()

    @property
    def opening(self) -> int:
        """How many sessions are being opened."""
        return self._opening.total()

    async def admit(self, identity: Identity) -> None:
        """Turn away whoever may not have a session now."""
        await self.check_ban(identity)
        if self.closed:
            raise TurnedAwayError(RESTARTING, "The host is restarting; try again in a moment.")
        # One whose end is only still to be written down takes no room any more.
        carried = sum(not talk.ended for talk in self._talks.values())
        if carried + self.opening >= self._options.max_sessions:
            raise TurnedAwayError(
                TOO_MANY_SESSIONS, "There are too many sessions at the moment; try again later."
            )
        if identity.session is not None:
            raise TurnedAwayError(
                UNKNOWN_SESSION, "This token is good for one session alone, and opens no other."
            )
        await self._make_room(identity.user)

    @contextmanager
    def one_more(self, user: str) -> Iterator[None]:
        """A session is being opened, and counts already."""
        self._opening[user] += 1
        try:
            yield
        finally:
            self._opening[user] -= 1
            self._opening += Counter()  # Who opens nothing is forgotten.

    async def check_ban(self, identity: Identity) -> None:
        """Turn away who is banned, and say for how long."""
        bans = self._runtime.capabilities.get("bans")
        seconds = await bans.remaining(identity.user) if bans is not None else 0.0
        if seconds > 0:
            raise TurnedAwayError(
                BANNED, f"You are banned for another {round(seconds + 0.5)} seconds.", retry_after=seconds
            )

    async def _make_room(self, user: str) -> None:
        """Let go of what a user has left behind, where he has as many sessions as one may."""
        held = [talk for talk in self._talks.values() if talk.session.user == user and talk.closing is None]
        over = len(held) + self._opening[user] - self._options.sessions_per_user + 1
        left = sorted((talk for talk in held if talk.forsaken), key=lambda talk: talk.left)
        if over > len(left):
            raise TurnedAwayError(TOO_MANY_SESSIONS, "You have too many sessions; end one of them first.")
        for talk in left[: max(0, over)]:
            # It is kept, and whoever comes back to it takes it up again.
            await talk.stop(ABANDONED)
