"""Policies that decide who may call a tool: modes, bans and availability.

Bans and rate limits belong to a user, or to one session if the user is unknown. The store key is `ban/NAME`
for a user and `ban/session:ID` for a session. A user whose own name starts with `session:` has the key
`ban-user/NAME`, so that the two never collide.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import orjson
from jackfield import ErrorType, ToolResponse, fail
from jackfield.governance import Call, Proceed, SyncPolicy
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.settings import NoSettings
from jackfield.store import ClaimState, Store, StoreUnavailableError

_SESSION_PREFIX = "session:"


class Subject(NamedTuple):
    """A user by name, or a session by its id if the user is unknown."""

    user: str | None
    session: str | None


def subject_key(kind: str, user: str | None, session: str) -> str:
    """Return the store key of data that belongs to a user, or to the session if there is no user."""
    if not user:
        if not session:
            raise ValueError(f"{kind}: neither a user nor a session is given")
        return f"{kind}/{_SESSION_PREFIX}{session}"
    return f"{kind}-user/{user}" if user.startswith(_SESSION_PREFIX) else f"{kind}/{user}"


def subject_prefixes(kind: str) -> tuple[str, str]:
    """Return the prefixes of all keys of a kind."""
    return f"{kind}/", f"{kind}-user/"


def parse_subject(key: str) -> Subject:
    """Return the subject of a key."""
    prefix, _, name = key.partition("/")
    if name.startswith(_SESSION_PREFIX) and not prefix.endswith("-user"):
        return Subject(None, name.removeprefix(_SESSION_PREFIX))
    return Subject(name, None)


LOCK_SECONDS = 20.0
"""The longest time that one change blocks others if its process hangs."""


class StoreLock:
    """Lock for read-modify-write of a store value, across processes: `async with StoreLock(store, key)`.

    It is a claim on the key. Readers need no lock: they see the value before or after a change. If a process
    is killed, the next one continues with the stored value. If it hangs, others proceed after `LOCK_SECONDS`,
    and `is_held`, called before the write, detects that. Only a hang that begins between that check and the
    write and outlasts the lease goes undetected.
    """

    def __init__(self, store: Store, key: str) -> None:
        self._store = store
        self._key = key
        # Distinguishes this claim from one that another process made after this one was lost.
        self._token = os.urandom(16)

    async def __aenter__(self) -> Self:
        while await self._claim() is not ClaimState.RUN:
            await self._wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._store.release(self._key)
        except StoreUnavailableError:
            # The change has already succeeded or failed; the claim expires.
            return

    async def is_held(self) -> bool:
        """Return whether the lock was held throughout.

        If not, acquire it again and return False; the caller must then read the value again.
        """
        state = await self._claim()
        if state is ClaimState.RUNNING:
            return True
        if state is not ClaimState.RUN:
            await self.__aenter__()
        return False

    async def _claim(self) -> ClaimState:
        # An event that removes all claims, such as a power cut, also ends all changes.
        return (await self._store.claim(self._key, self._token, ttl=LOCK_SECONDS, durable=False)).state

    async def _wait(self) -> None:
        held = await self._store.outcome(self._key, within=LOCK_SECONDS)
        if held.state is ClaimState.IN_DOUBT and await self._store.reclaim(self._key):
            # Release and claim again, because the lease of the old claim began in the process that died.
            await self._store.release(self._key)


class ModePolicy(SyncPolicy):
    """Rejects a tool outside its allowed modes; the mode of a session never changes."""

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:
        """Apply only to tools that the session's mode excludes."""
        return session.mode not in tool.manifest.allowed_modes

    def before(self, call: Call) -> ToolResponse:
        """Reject the call."""
        call.end("modes", "refused")
        allowed = " or ".join(call.tool.manifest.allowed_modes)
        return fail(
            ErrorType.MODE_RESTRICTED,
            f"{call.tool.id} works only in {allowed} sessions, but this is a {call.session.mode} session.",
            suggestion="Tell the user, and continue without it.",
        )


class Bans:
    """The capability `bans`: adds, lists and removes bans."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, user: str | None, seconds: float, session: str = "") -> float:
        """Ban a user, or the session if there is no user; extend an active ban. Return the end of the ban."""
        banned = subject_key("ban", user, session)
        async with StoreLock(self._store, banned) as change:
            while True:
                now = self._store.now()
                until = max(now, await self._until(banned)) + seconds
                if await change.is_held():
                    await self._store.put(banned, orjson.dumps(until), ttl=until - now)
                    return until

    async def remaining(self, user: str | None, session: str = "") -> float:
        """Return the seconds until a ban ends; 0 without one."""
        kept = await self._store.get(subject_key("ban", user, session))
        return max(0.0, float(orjson.loads(kept)) - self._store.now()) if kept else 0.0

    async def active(self) -> dict[Subject, float]:
        """Return every active ban with the time at which it ends, by the store's clock."""
        banned = [each for prefix in subject_prefixes("ban") for each in await self._store.keys(prefix)]
        held = {parse_subject(each): await self._until(each) for each in banned}
        # A ban may have ended since its key was read.
        return {who: until for who, until in held.items() if until}

    async def remove(self, user: str | None, session: str = "") -> bool:
        """End a ban early; return whether there was one."""
        banned = subject_key("ban", user, session)
        # Under the lock, because a concurrent extension would write the ban back.
        async with StoreLock(self._store, banned):
            return await self._store.delete(banned)

    async def _until(self, banned: str) -> float:
        """Return when a ban ends, by the store's clock; 0 without one."""
        kept = await self._store.get(banned)
        return float(orjson.loads(kept)) if kept else 0.0


class BanPolicy:
    """Rejects the calls of banned users."""

    def __init__(self, settings: NoSettings, services: Services) -> None:  # noqa: ARG002
        self._store = services.store

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Apply to every tool except those that may extend a ban; a ban can start at any time."""
        return "bans" not in tool.manifest.requires

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Reject the call while a ban is active; the response contains the remaining time."""
        kept = await self._store.get(subject_key("ban", call.session.user, call.session.id))
        if kept is None:
            return await proceed(call)
        call.end("bans", "refused")
        seconds = math.ceil(float(orjson.loads(kept)) - self._store.now())
        return fail(
            ErrorType.AUTH,
            f"This user is banned for another {seconds} {'second' if seconds == 1 else 'seconds'}.",
            details={"retryAfterSeconds": seconds},
        )


class AvailabilityPolicy(SyncPolicy):
    """Rejects a tool in sessions that its `availability` excludes."""

    def __init__(self, settings: NoSettings, services: Services) -> None:  # noqa: ARG002
        self._capabilities = services.capabilities

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:
        """Apply only to tools that are unavailable in the session; this does not change during a session."""
        return self._refusal(tool, session) is not None

    def before(self, call: Call) -> ToolResponse | None:
        """Reject the call, and say what is missing."""
        refusal = self._refusal(call.tool, call.session)
        if refusal is not None:
            call.end("availability", "refused")
        return refusal

    def _refusal(self, tool: RegisteredTool, session: Session) -> ToolResponse | None:
        wanted = tool.manifest.availability
        if not wanted:
            return None
        if wanted.get("mode", session.mode) != session.mode:
            message = f"{tool.id} is available only in {wanted['mode']} sessions."
            return fail(ErrorType.MODE_RESTRICTED, message)
        missing = set(wanted.get("capabilities", ())) - self._capabilities
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            message = f"{tool.id} needs {', '.join(sorted(missing))}, which {verb} not installed."
            return fail(ErrorType.NOT_FOUND, message)
        return _user_refusal(tool, session, wanted.get("user", {}))


def _user_refusal(tool: RegisteredTool, session: Session, wanted: Mapping[str, Any]) -> ToolResponse | None:
    if "authenticated" in wanted and wanted["authenticated"] != (session.user is not None):
        who = "signed-in users" if wanted["authenticated"] else "guests"
        return fail(ErrorType.AUTH, f"{tool.id} is available only to {who}.")
    if "roles" in wanted and not session.roles.intersection(wanted["roles"]):
        return fail(ErrorType.AUTH, f"{tool.id} is not available to this user.")
    return None
