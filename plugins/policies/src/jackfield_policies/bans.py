"""A banned user is refused until the ban is over, on every host that shares the store."""

from __future__ import annotations

import math

import orjson
from jackfield import ErrorType, ToolResponse, fail
from jackfield.governance import Call, Proceed
from jackfield.offers import PluginSettings, Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.store import Store

from jackfield_policies.exclusive import Exclusive
from jackfield_policies.settings import numbers
from jackfield_policies.subjects import subject


class Bans:
    """The capability `bans`: imposes a ban, and says how long one lasts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def impose(self, user: str, seconds: float) -> float:
        """Ban, or extend a ban that holds; the store's time at which it ends."""
        async with Exclusive(self._store, _key(user)) as change:
            while True:
                now = self._store.now()
                until = max(now, await self._until(user)) + seconds
                if await change.still_ours():
                    await self._store.put(_key(user), orjson.dumps(until), ttl=until - now)
                    return until

    async def remaining(self, user: str) -> float:
        """Seconds until a ban is over; 0 without one."""
        return max(0.0, await self._until(user) - self._store.now())

    async def held(self) -> dict[str, float]:
        """Everybody who is banned, each with the store's time at which that ends."""
        banned = [key.removeprefix(_key("")) for key in await self._store.keys(_key(""))]
        held = {user: await self._until(user) for user in banned}
        # One may have ended since its key was read.
        return {user: until for user, until in held.items() if until}

    async def lift(self, user: str) -> bool:
        """End a ban before its time; say whether there was one."""
        # In turn with those who extend it, or one of them would put back what it has read before.
        async with Exclusive(self._store, _key(user)):
            return await self._store.delete(_key(user))

    async def _until(self, user: str) -> float:
        kept = await self._store.get(_key(user))
        return float(orjson.loads(kept)) if kept else 0.0


def _key(user: str) -> str:
    return f"ban/{user}"


class BanPolicy:
    """Refuses the calls of a banned user."""

    def __init__(self, settings: PluginSettings, services: Services) -> None:
        numbers("bans", settings, {})
        self._store = services.store

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Every call, for a ban may come at any time; but not of what imposes bans, which may extend one."""
        return "bans" not in tool.manifest.requires

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Refuse while a ban holds, and say how long it will."""
        kept = await self._store.get(_key(subject(call.session)))
        if kept is None:
            return await proceed(call)
        call.end("bans", "refused")
        seconds = math.ceil(float(orjson.loads(kept)) - self._store.now())
        return fail(
            ErrorType.AUTH,
            f"This user is banned for another {seconds} seconds.",
            details={"retryAfterSeconds": seconds},
        )
