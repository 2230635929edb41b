"""Access to sessions: bans, limits on new sessions, and tokens."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

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
from jackfield.protocol.messages import ErrorMessage
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.store import StoreUnavailableError
from jackfield.user_slots import UserSlots

from jackfield_sessions.live_session import LiveSession
from jackfield_sessions.options import SessionOptions

ROOM = "room/"
"""Prefix of the keys with which a host asks the others to close abandoned sessions of a user."""

ROOM_SECONDS = 3.0
"""How long a new session waits for other hosts to close abandoned ones; they check every second."""

_POLL_SECONDS = 0.1


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
    organisation: str | None = None
    """The organisation of the user; None if the token states none."""
    toolset: str | None = None
    """The name of the toolset of sessions that the token opens; None if the settings decide by user."""

    @property
    def session_fields(self) -> dict[str, Any]:
        """The fields of a session that is opened for this identity."""
        fields = {"user": self.user, "roles": self.roles}
        return fields | {"organisation": self.organisation, "toolset": self.toolset}


class SessionRefused(Exception):  # noqa: N818 - a decision, not a fault
    """A client may not use the session that it requested."""

    def __init__(
        self,
        closing: CloseReason,
        message: str,
        retry_after: float | None = None,
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message)
        self.closing = closing
        self.message = message
        self.retry_after = retry_after
        self.suggestion = suggestion
        """What the user can do; the close reason's own advice is for developers of clients."""

    def to_message(self) -> ErrorMessage:
        """Return the error that the host sends to a client before it closes the connection."""
        return ErrorMessage(
            code=self.closing.name,
            message=self.message,
            suggestion=self.suggestion,
            retry_after=None if self.retry_after is None else round(self.retry_after, 3),
        )


def banned(seconds: float) -> SessionRefused:
    """Return the refusal for a user whose ban ends in this many seconds."""
    whole = round(seconds + 0.5)
    message = f"You are banned for another {whole} {'second' if whole == 1 else 'seconds'}."
    return SessionRefused(BANNED, message, retry_after=seconds)


def unknown_session() -> SessionRefused:
    """Return the refusal for a session that does not exist or belongs to another user."""
    return SessionRefused(UNKNOWN_SESSION, "There is no such session; sessions can be resumed for 24 hours.")


def session_ended() -> SessionRefused:
    """Return the refusal for a session that has ended."""
    return SessionRefused(ENDED, "This session has ended; start a new one.")


def check_access(session: Session, secret: str, identity: Identity, *, ended: bool = False) -> None:
    """Raise `SessionRefused` if a client may not use a session; an ended session requires `ended`."""
    if not owns(identity, session.id, session.user) or not session.verify_secret(secret):
        raise unknown_session()
    if not (session.active or ended):
        raise session_ended()


def owns(identity: Identity, session_id: str, user: str | None) -> bool:
    """Return whether a session of `user` belongs to an identity."""
    return user == identity.user and identity.session in (None, session_id)


class Admission:
    """Decides whether a user may open a session now."""

    def __init__(
        self,
        runtime: Runtime,
        live_sessions: Mapping[str, LiveSession],
        options: SessionOptions,
        slots: UserSlots,
    ) -> None:
        """`slots` are the live sessions of all hosts, by user."""
        self.closed = False
        """True if no session may be opened, because the host is stopping."""
        self.bans = runtime.capabilities.get("bans")
        """The capability that knows who is banned; None if no plugin provides it."""
        self._runtime = runtime
        self._live_sessions = live_sessions
        self._options = options
        self._slots = slots
        self._opening: Counter[str] = Counter()
        self._answered: dict[str, bytes] = {}
        """The last request for room that this host has answered, by user."""

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
                TOO_MANY_SESSIONS,
                "There are too many sessions at the moment.",
                suggestion="Try again later.",
            )
        if identity.session is not None:
            raise SessionRefused(
                UNKNOWN_SESSION, "This token is valid for one session only and cannot open another."
            )
        await self._evict_abandoned(identity.user)

    @asynccontextmanager
    async def reserve_slot(self, user: str, session_id: str) -> AsyncIterator[None]:
        """Count a session that is being opened against the limit on all hosts together.

        Raises `SessionRefused` if the limit is exceeded. If the session is not opened, it no longer counts.
        """
        self._opening[user] += 1
        try:
            await self._slots.take(user, session_id)
            try:
                await self._make_room(user)
                yield
            except BaseException:
                # If the store is unavailable, the entry expires.
                with suppress(StoreUnavailableError):
                    await self._slots.release(user, session_id)
                raise
        finally:
            self._opening[user] -= 1
            self._opening += Counter()  # Removes users who are not opening a session.

    async def check_ban(self, identity: Identity) -> None:
        """Raise `SessionRefused` if a user is banned."""
        seconds = await self.bans.remaining(identity.user) if self.bans is not None else 0.0
        if seconds > 0:
            raise banned(seconds)

    async def answer_requests_for_room(self) -> None:
        """Close abandoned sessions of users who open a session on another host and have too many."""
        store = self._runtime.store
        for key in await store.keys(ROOM) if self._live_sessions else ():
            user, asked = unquote(key.removeprefix(ROOM)), await store.get(key)
            if asked is None or self._answered.get(user) == asked:
                continue
            self._answered = {user: asked, **dict(list(self._answered.items())[:100])}
            count, _, host = asked.decode().split()
            if host != self._runtime.hosts.id:
                await self._close_abandoned(user, int(count))

    def _open_here(self, user: str) -> list[LiveSession]:
        """Return a user's sessions on this host, except those that are closing."""
        mine = (each for each in self._live_sessions.values() if each.session.user == user)
        return [each for each in mine if each.closing is None]

    async def _evict_abandoned(self, user: str) -> None:
        """Close abandoned sessions of a user who has reached the limit on this host."""
        held = self._open_here(user)
        over = len(held) + self._opening[user] - self._options.sessions_per_user + 1
        if over > sum(each.is_abandoned for each in held):
            raise _too_many_sessions()
        await self._close_abandoned(user, over)

    async def _make_room(self, user: str) -> None:
        """Close abandoned sessions of a user who has reached the limit on all hosts together."""
        elsewhere = await self._elsewhere(user)
        over = self._over(user, elsewhere)
        over -= await self._close_abandoned(user, over)
        if over <= 0:
            return
        request = f"{over} {os.urandom(8).hex()} {self._runtime.hosts.id}".encode()
        await self._runtime.store.put(ROOM + quote(user, safe=""), request, ttl=ROOM_SECONDS)
        deadline = time.monotonic() + ROOM_SECONDS
        while self._over(user, elsewhere) > 0:
            if not elsewhere or time.monotonic() > deadline:
                raise _too_many_sessions()
            await asyncio.sleep(_POLL_SECONDS)
            elsewhere = await self._elsewhere(user)

    async def _elsewhere(self, user: str) -> set[str]:
        """Return the ids of a user's live sessions on other hosts."""
        # A session that this host has just taken over still has an entry of its previous host.
        return {slot.item for slot in await self._slots.elsewhere(user)} - self._live_sessions.keys()

    def _over(self, user: str, elsewhere: set[str]) -> int:
        """Return by how many sessions a user exceeds the limit, including those that are being opened."""
        held = len(self._open_here(user)) + self._opening[user] + len(elsewhere)
        return held - self._options.sessions_per_user

    async def _close_abandoned(self, user: str, count: int) -> int:
        """Close up to `count` abandoned sessions of a user on this host, oldest first; return how many."""
        if count <= 0:
            return 0
        abandoned = [each for each in self._open_here(user) if each.is_abandoned]
        chosen = sorted(abandoned, key=lambda each: each.left)[:count]
        for each in chosen:
            # The session is saved, so its client can resume it.
            await each.close(ABANDONED)
        return len(chosen)


def _too_many_sessions() -> SessionRefused:
    return SessionRefused(TOO_MANY_SESSIONS, "You have too many sessions; end one of them first.")
