"""`ShardedStore`: the store protocol over several PostgreSQL databases.

No operation involves two keys, so every key and stream is in one database. A key names a kind and then what
it belongs to, mostly a session or a user: `session/ID`, `call/ID/...`, `events/ID`. The second part decides
the database, so everything that belongs to a session is in the same one, and an unreachable database affects
only its own sessions and users.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, Self, TypeVar

from jackfield.store import Claim, DoubtfulClaim, StreamEntry
from jackfield.store_limits import check

from jackfield_store_postgres.connection import ConnectionOptions
from jackfield_store_postgres.database import StoreId
from jackfield_store_postgres.schema import Shard
from jackfield_store_postgres.shard_set import ShardSet
from jackfield_store_postgres.store import PostgresStore

Result = TypeVar("Result")

_PART = re.compile(r"[^/]*/([^/][^/@]*)")
"""The second part of a key. It ends at a slash, or at the `@` before the epoch of a fenced record, because
all epochs of a record belong together.
"""

_ENDED_PART = re.compile(r"[^/]*/[^/][^/@]*[/@]")


def shard_of(key: str, count: int) -> int:
    """Return the index of the shard that has a key or stream; it is the same in every process and version."""
    found = _PART.match(key)
    part = found[1] if found else key
    digest = hashlib.blake2b(part.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % count


def shard_of_prefix(prefix: str, count: int) -> int | None:
    """Return the index of the shard that has all keys with a prefix; None if several may have some."""
    return shard_of(prefix, count) if _ENDED_PART.match(prefix) else None


class ShardedStore:
    """Shared state in several PostgreSQL databases; each is a `PostgresStore` with the same `options`.

    The list of databases, including its order, belongs to the store. Every database knows its place in the
    list, and one at a different place is rejected. An operation on an unreachable database fails, and so does
    any operation that has to query all databases: there are no partial answers.
    """

    def __init__(self, urls: Sequence[str], *, store_id: str | None = None, **options: Any) -> None:
        shared = StoreId(store_id)
        self._shards = [
            PostgresStore(url, **options, create=False, store_id=shared, shard=Shard(number, len(urls)))
            for number, url in enumerate(urls, 1)
        ]

    @classmethod
    async def open(cls, urls: Sequence[str], *, create: bool = True, **options: Any) -> Self:
        """Return a store whose databases have all been opened; with `create`, a missing store is created."""
        store = cls(urls, **options)
        try:
            if create:
                names = ConnectionOptions.__slots__
                chosen = {name: value for name, value in options.items() if name in names}
                async with ShardSet.connect([ConnectionOptions(url, **chosen) for url in urls]) as shards:
                    await shards.create(options.get("store_id"))
            await store._ask_all(lambda shard: shard.get(""))
        except BaseException:
            await store.close()
            raise
        return store

    def now(self) -> float:
        """See `Store.now`; the first database's clock is used. Times to live use each one's own clock."""
        return self._shards[0].now()

    def put(self, key: str, value: bytes, *, ttl: float | None = None) -> Awaitable[None]:
        """See `Store.put`."""
        return self._shard(key).put(key, value, ttl=ttl)

    def get(self, key: str) -> Coroutine[Any, Any, bytes | None]:
        """See `Store.get`."""
        return self._shard(key).get(key)

    def delete(self, key: str) -> Coroutine[Any, Any, bool]:
        """See `Store.delete`."""
        return self._shard(key).delete(key)

    def take(self, key: str) -> Coroutine[Any, Any, bytes | None]:
        """See `Store.take`."""
        return self._shard(key).take(key)

    async def keys(self, prefix: str) -> list[str]:
        """See `Store.keys`."""
        return await self._list(prefix, lambda shard: shard.keys(prefix))

    def add(self, key: str, amount: int, *, window: float) -> Coroutine[Any, Any, int]:
        """See `Store.add`."""
        return self._shard(key).add(key, amount, window=window)

    def claim(
        self,
        key: str,
        fingerprint: bytes,
        *,
        ttl: float,
        durable: bool = True,
        note: bytes = b"",
        result: bytes | None = None,
    ) -> Coroutine[Any, Any, Claim]:
        """See `Store.claim`."""
        return self._shard(key).claim(key, fingerprint, ttl=ttl, durable=durable, note=note, result=result)

    def holds(self, key: str) -> Coroutine[Any, Any, bool]:
        """See `Store.holds`."""
        return self._shard(key).holds(key)

    def reclaim(self, key: str) -> Coroutine[Any, Any, bool]:
        """See `Store.reclaim`."""
        return self._shard(key).reclaim(key)

    def complete(
        self, key: str, result: bytes, *, durable: bool = True, ttl: float | None = None
    ) -> Coroutine[Any, Any, bool]:
        """See `Store.complete`."""
        return self._shard(key).complete(key, result, durable=durable, ttl=ttl)

    def release(self, key: str) -> Coroutine[Any, Any, None]:
        """See `Store.release`."""
        return self._shard(key).release(key)

    def abandon(self, key: str) -> Coroutine[Any, Any, None]:
        """See `Store.abandon`."""
        return self._shard(key).abandon(key)

    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        """See `Store.in_doubt`."""
        return await self._list(prefix, lambda shard: shard.in_doubt(prefix))

    def outcome(self, key: str, *, within: float) -> Coroutine[Any, Any, Claim]:
        """See `Store.outcome`."""
        return self._shard(key).outcome(key, within=within)

    def append(self, stream: str, value: bytes, *more: bytes, ttl: float | None = None) -> Awaitable[int]:
        """See `Store.append`."""
        return self._shard(stream).append(stream, value, *more, ttl=ttl)

    def read(
        self, stream: str, *, after: int = 0, limit: int = 1000
    ) -> Coroutine[Any, Any, list[StreamEntry]]:
        """See `Store.read`."""
        return self._shard(stream).read(stream, after=after, limit=limit)

    def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[StreamEntry]:
        """See `Store.follow`."""
        return self._shard(stream).follow(stream, after=after)

    async def streams(self, prefix: str) -> list[str]:
        """See `Store.streams`."""
        return await self._list(prefix, lambda shard: shard.streams(prefix))

    def clear(self, stream: str) -> Coroutine[Any, Any, int]:
        """See `Store.clear`."""
        return self._shard(stream).clear(stream)

    async def prune(self) -> int:
        """See `Store.prune`; the other databases are pruned even if one is unreachable."""
        return sum(await self._ask_all(lambda shard: shard.prune()))

    async def close(self) -> None:
        """See `Store.close`."""
        await self._ask_all(lambda shard: shard.close())

    def _shard(self, key: str) -> PostgresStore:
        # Checked here too, because an invalid key cannot be hashed.
        check(key)
        return self._shards[shard_of(key, len(self._shards))]

    async def _list(
        self, prefix: str, ask: Callable[[PostgresStore], Coroutine[Any, Any, list[Result]]]
    ) -> list[Result]:
        check(prefix)
        index = shard_of_prefix(prefix, len(self._shards))
        if index is not None:
            return await ask(self._shards[index])
        found: list[Any] = [each for part in await self._ask_all(ask) for each in part]
        return sorted(found)

    async def _ask_all(self, ask: Callable[[PostgresStore], Coroutine[Any, Any, Result]]) -> list[Result]:
        """Return the answers of all databases; wait for all of them, then raise if one failed."""
        answers = await asyncio.gather(*map(ask, self._shards), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return [answer for answer in answers if not isinstance(answer, BaseException)]
