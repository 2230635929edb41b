"""A store whose time the test sets, by replacing the SQL function from which all its times come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import asyncpg
from postgres_stores import AnyStore

_REPLACE = """
    CREATE TABLE test_time AS SELECT to_timestamp(0) AS time;
    CREATE OR REPLACE FUNCTION store_time() RETURNS timestamptz LANGUAGE sql VOLATILE
        AS 'SELECT time FROM test_time';
"""


class ClockedStore:
    """A store that sets the time of its databases before each operation.

    `open_store` returns the store once it exists in all the databases at `urls`.
    """

    def __init__(
        self,
        urls: Sequence[str],
        schema: str,
        clock: Callable[[], float],
        open_store: Callable[[], Awaitable[AnyStore]],
    ) -> None:
        self._urls = urls
        self._schema = schema
        self._clock = clock
        self._set_to: float | None = None
        self._open_store = open_store
        self._store: AnyStore | None = None
        self._controls: list[Any] = []
        self.now = clock

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            return await getattr(await self._at_time(), name)(*arguments, **options)

        return call

    async def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[Any]:
        store = await self._at_time()
        async for entry in store.follow(stream, after=after):
            yield entry

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()
        for control in self._controls:
            await control.close()

    async def _at_time(self) -> AnyStore:
        """Return the store, after its databases have got the current time."""
        if self._store is None:
            self._store = await self._open_store()
            settings = {"search_path": self._schema, "synchronous_commit": "off"}
            for url in self._urls:
                self._controls.append(await asyncpg.connect(url, server_settings=settings))
                await self._controls[-1].execute(_REPLACE)
        if self._set_to != self._clock():
            self._set_to = self._clock()
            for control in self._controls:
                await control.execute("UPDATE test_time SET time = to_timestamp($1)", self._set_to)
        return self._store
