"""Several simulated processes on one store: each has its own holder, and a test decides which one hangs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jackfield.store import Claim, ClaimState, DoubtfulClaim, MemoryStore, StoreUnavailableError

IN_DOUBT = Claim(ClaimState.IN_DOUBT)


class SharedStore(MemoryStore):
    """The store as one process sees it.

    While `hangs` is set, the other processes consider this one dead. While `away` is set, this process cannot
    reach the store.
    """

    def __init__(self, clock: Callable[[], float], other: SharedStore | None = None) -> None:
        super().__init__(clock)
        self.hangs = False
        self.away = False
        self._holders: dict[str, SharedStore] = {}
        if other is not None:
            self._holders, self._values, self._claims = other._holders, other._values, other._claims
            self._notes, self._abandoned, self._waiters = other._notes, other._abandoned, other._waiters

    def _reach(self) -> None:
        if self.away:
            raise StoreUnavailableError("the test has cut the connection")

    def _dead(self, key: str) -> bool:
        holder = self._holders.get(key, self)
        return holder is not self and holder.hangs and self._running(key) is not None

    def _mine(self, key: str) -> bool:
        self._reach()
        return self._holders.get(key) is self

    async def put(self, key: str, value: bytes, **options: Any) -> None:
        self._reach()
        await super().put(key, value, **options)

    async def get(self, key: str) -> bytes | None:
        self._reach()
        return await super().get(key)

    async def claim(self, key: str, fingerprint: bytes, **options: Any) -> Claim:
        self._reach()
        found = await super().claim(key, fingerprint, **options)
        if found.state is ClaimState.RUN:
            self._holders[key] = self
        return IN_DOUBT if found.state is ClaimState.RUNNING and self._dead(key) else found

    async def outcome(self, key: str, *, within: float) -> Claim:
        self._reach()
        found = await super().outcome(key, within=0 if self._dead(key) else within)
        self._reach()
        return IN_DOUBT if found.state is ClaimState.RUNNING and self._dead(key) else found

    async def holds(self, key: str) -> bool:
        return self._mine(key) and await super().holds(key)

    async def reclaim(self, key: str) -> bool:
        self._reach()
        won = await super().reclaim(key) or self._dead(key)
        if won:
            self._holders[key] = self
        return won

    async def complete(self, key: str, result: bytes, **options: Any) -> bool:
        return self._mine(key) and await super().complete(key, result, **options)

    async def release(self, key: str) -> None:
        if self._mine(key):
            await super().release(key)

    async def abandon(self, key: str) -> None:
        if self._mine(key):
            await super().abandon(key)

    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        self._reach()
        dead = [DoubtfulClaim(key, note) for key, note in self._notes.items() if self._dead(key)]
        abandoned = await super().in_doubt(prefix)
        return sorted(abandoned + [each for each in dead if each.key.startswith(prefix)])
