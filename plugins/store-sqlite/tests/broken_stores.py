"""SQLite stores that break a guarantee between processes; other processes import them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import apsw
from jackfield.store import Claim, ClaimState, DoubtfulClaim
from jackfield_store_sqlite import SqliteStore


class Impatient(SqliteStore):
    """The real store, except that it considers a hung process dead soon."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lease=1.0)

    async def _execute(self, sql: str, *bindings: str) -> list[Any]:
        def work(db: apsw.Connection, _now: float) -> list[Any]:
            return db.execute(sql, bindings).fetchall()

        return await self._write(work)


class RecordsInTwoSteps(Impatient):
    async def claim(
        self, key: str, fingerprint: bytes, *, result: bytes | None = None, **options: Any
    ) -> Claim:
        found = await super().claim(key, fingerprint, **options)
        if result is not None and found.state is ClaimState.RUN:
            await asyncio.sleep(0.05)
            await self.complete(key, result)
        return found


class TellsEveryoneThatTheyHold(Impatient):
    async def holds(self, key: str) -> bool:
        return (await self.outcome(key, within=0)).state is ClaimState.RUNNING


class AbandonsForOthers(Impatient):
    async def abandon(self, key: str) -> None:
        await self._execute("UPDATE claims SET owner = '' WHERE key = ?", key)


class ListsOnlyTheAbandoned(Impatient):
    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        abandoned = await self._execute("SELECT key FROM claims WHERE owner = ''")
        return [each for each in await super().in_doubt(prefix) if (each.key,) in abandoned]


class ListsWhatOthersRun(Impatient):
    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        noted = await self._execute("SELECT key, note FROM claims WHERE note IS NOT NULL")
        return sorted(DoubtfulClaim(key, note) for key, note in noted if key.startswith(prefix))


class PrunesWhatTheDeadHeld(Impatient):
    async def prune(self) -> int:
        for each in await self.in_doubt(""):
            await self.reclaim(each.key)
            await self.release(each.key)
        return await super().prune()


class RefusesTheLate(Impatient):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._since = time.monotonic()

    async def complete(self, key: str, result: bytes, **options: Any) -> bool:
        late = time.monotonic() > self._since + 1.0
        return not late and await super().complete(key, result, **options)


class LetsTheLateOverwrite(Impatient):
    async def complete(self, key: str, result: bytes, **options: Any) -> bool:
        await self._execute("UPDATE claims SET owner = ? WHERE key = ?", self._owner.id, key)
        return await super().complete(key, result, **options)
