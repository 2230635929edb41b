"""Replies of clients to questions of the server, whichever host they reach.

A client posts its reply like any request, so a proxy may pass it to another host. That host puts the reply
into the store, where the host that asked looks for it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

import mcp_types as t
import orjson
from jackfield.store import Store
from mcp.shared.exceptions import MCPError

POLL_SECONDS = 0.5
"""How often the store is asked for a reply that reached another host."""

KEPT_SECONDS = 600.0
"""How long a reply waits in the store."""

MAX_BYTES = 65536
"""Maximum size of a reply that is passed on to another host."""

_ASKED = re.compile(r"jackfield-[0-9a-f]{24}")

Json = dict[str, Any]


def new_question_id() -> str:
    """Return an id for a question, which no other host uses."""
    return f"jackfield-{os.urandom(12).hex()}"


class Replies:
    """The replies of one connection."""

    def __init__(self, store: Store, connection: str, waiting: dict[str, asyncio.Future[Json]]) -> None:
        """`waiting` are the questions of this process that have no reply yet, of all connections."""
        self._store = store
        self._connection = connection
        self._waiting = waiting

    @contextmanager
    def expecting(self, asked_id: str) -> Iterator[Awaitable[Json]]:
        """Expect a reply to a question; awaiting it returns the result or raises the client's error."""
        name = self._name(asked_id)
        future = self._waiting[name] = asyncio.get_running_loop().create_future()
        try:
            yield self._reply(name, future)
        finally:
            del self._waiting[name]

    async def deliver(self, message: Json) -> None:
        """Pass on a reply; unknown ones expire in the store."""
        asked_id = message.get("id")
        if not isinstance(asked_id, str) or not _ASKED.fullmatch(asked_id):
            return
        name = self._name(asked_id)
        future = self._waiting.get(name)
        if future is None:
            value = orjson.dumps(message)
            if len(value) <= MAX_BYTES:
                await self._store.put(name, value, ttl=KEPT_SECONDS)
        elif not future.done():
            future.set_result(message)

    async def _reply(self, name: str, future: asyncio.Future[Json]) -> Json:
        while not future.done():
            await asyncio.wait({future}, timeout=POLL_SECONDS)
            if not future.done():
                stored = await self._store.take(name)
                if stored is not None:
                    future.set_result(orjson.loads(stored))
        message = future.result()
        if "error" in message:
            raise _error(message["error"])
        result = message.get("result")
        return result if isinstance(result, dict) else {}

    def _name(self, asked_id: str) -> str:
        return f"mcp/reply/{self._connection}/{asked_id}"


def _error(error: Any) -> MCPError:
    message = error.get("message") if isinstance(error, dict) else None
    return MCPError(t.INTERNAL_ERROR, str(message or "the client answered with an error")[:500])
