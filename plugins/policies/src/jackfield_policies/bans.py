"""A banned user is refused until the ban is over, on every host that shares the store."""

from __future__ import annotations

import math

import orjson
from jackfield import ErrorType, ToolResponse, fail
from jackfield.governance import Call, Proceed
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.settings import NoSettings
from jackfield.store import Store

from jackfield_policies.exclusive import Exclusive
from jackfield_policies.subjects import Subject, key, prefixes, subject


class Bans:
    """The capability `bans`: imposes a ban, and says how long one lasts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def impose(self, user: str | None, seconds: float, session: str = "") -> float:
        """Ban a user, or the session where there is none; extends a ban that holds. When it ends."""
        banned = key("ban", user, session)
        async with Exclusive(self._store, banned) as change:
            while True:
                now = self._store.now()
                until = max(now, await self._until(banned)) + seconds
                if await change.still_ours():
                    await self._store.put(banned, orjson.dumps(until), ttl=until - now)
                    return until

    async def remaining(self, user: str | None, session: str = "") -> float:
        """Seconds until a ban is over; 0 without one."""
        return max(0.0, await self._until(key("ban", user, session)) - self._store.now())

    async def held(self) -> dict[Subject, float]:
        """Everybody who is banned, each with the store's time at which that ends."""
        banned = [each for prefix in prefixes("ban") for each in await self._store.keys(prefix)]
        held = {subject(each): await self._until(each) for each in banned}
        # One may have ended since its key was read.
        return {who: until for who, until in held.items() if until}

    async def lift(self, user: str | None, session: str = "") -> bool:
        """End a ban before its time; say whether there was one."""
        banned = key("ban", user, session)
        # In turn with those who extend it, or one of them would put back what it has read before.
        async with Exclusive(self._store, banned):
            return await self._store.delete(banned)

    async def _until(self, banned: str) -> float:
        kept = await self._store.get(banned)
        return float(orjson.loads(kept)) if kept else 0.0


class BanPolicy:
    """Refuses the calls of a banned user."""

    def __init__(self, settings: NoSettings, services: Services) -> None:  # noqa: ARG002
        self._store = services.store

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Every call, for a ban may come at any time; but not of what imposes bans, which may extend one."""
        return "bans" not in tool.manifest.requires

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Refuse while a ban holds, and say how long it will."""
        kept = await self._store.get(key("ban", call.session.user, call.session.id))
        if kept is None:
            return await proceed(call)
        call.end("bans", "refused")
        seconds = math.ceil(float(orjson.loads(kept)) - self._store.now())
        return fail(
            ErrorType.AUTH,
            f"This user is banned for another {seconds} seconds.",
            details={"retryAfterSeconds": seconds},
        )
