"""The connected MCP clients of all hosts, in the store.

A client that begins with a handshake has a connection: a record of what the client declared about itself,
under the id that it sends with each request. Every host can read the record, so any host can answer any
request. Clients without a handshake are recorded too, for operators.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import OrderedDict
from typing import Any, NamedTuple

import orjson
from jackfield.runtime import Runtime

from jackfield_mcp_server.caller import MAX_NAME, Caller
from jackfield_mcp_server.client_sessions import session_id_of

PREFIX = "mcp/client/"

CONNECTION_SECONDS = 86400.0
"""How long an unused connection is kept."""

SEEN_SECONDS = 300.0
"""How often the record of an active client is written again."""

MAX_CACHED = 10_000

_IS_ID = re.compile(r"[0-9a-f]{32}")


class TooManyConnections(Exception):  # noqa: N818 - a limit, not a fault
    """The user has too many connected clients."""


class Client(NamedTuple):
    """A connected client."""

    id: str
    user: str
    name: str
    version: str
    protocol: str
    session: str
    """The id of the client's session."""
    capabilities: dict[str, Any]
    """The capabilities `elicitation` and `sampling`, as the client declared them."""
    handshake: bool
    opened_at: float
    seen_at: float
    host: str
    log_level: str | None = None
    """The lowest level of the log messages that the client gets; None if it gets none."""


class Clients:
    """Records the clients that are connected to the hosts of this store."""

    def __init__(self, runtime: Runtime, limit: int) -> None:
        """`limit` is the maximum number of clients per user."""
        self._runtime = runtime
        self._limit = limit
        self._known: OrderedDict[str, tuple[Client, float]] = OrderedDict()
        """The records that this process has read or written, each with the time when it did so."""

    async def connect(self, caller: Caller, protocol: str, capabilities: dict[str, Any]) -> Client:
        """Record a client that began with a handshake; raise `TooManyConnections` at the user's limit."""
        user = caller.identity.user
        if len(await self._runtime.store.keys(_prefix(user))) >= self._limit:
            raise TooManyConnections
        connection = os.urandom(16).hex()
        caller = caller._replace(connection=connection)
        return await self._write(self._client(connection, caller, protocol, capabilities))

    async def find(self, user: str, client_id: str) -> Client | None:
        """Return a user's connection; None if there is none, or it belongs to another user."""
        if not _IS_ID.fullmatch(client_id):
            return None
        key = _prefix(user) + client_id
        known, at = self._known.get(key, (None, 0.0))
        # Read again from time to time: another host may have ended the connection.
        if known is not None and time.monotonic() - at < SEEN_SECONDS:
            return known
        value = await self._runtime.store.get(key)
        if value is None:
            self._known.pop(key, None)
            return None
        client = Client(**orjson.loads(value))
        return await self._write(client._replace(seen_at=self._now(), host=self._runtime.hosts.name))

    async def update(self, client: Client) -> Client:
        """Write a changed record."""
        return await self._write(client)

    async def note(self, caller: Caller, protocol: str) -> None:
        """Record that a client without a handshake is active."""
        session = self._session_id(caller)
        key = _prefix(caller.identity.user) + session
        known, at = self._known.get(key, (None, 0.0))
        if known is None or time.monotonic() - at >= SEEN_SECONDS:
            client = self._client(session, caller, protocol, {}, handshake=False)
            opened = known.opened_at if known is not None else client.opened_at
            await self._write(client._replace(opened_at=opened))

    def _session_id(self, caller: Caller) -> str:
        return session_id_of(caller, self._runtime.toolsets.choose(**caller.identity.session_fields))

    async def disconnect(self, client: Client) -> None:
        """Delete a connection's record."""
        key = _prefix(client.user) + client.id
        self._known.pop(key, None)
        await self._runtime.store.delete(key)

    async def all(self) -> list[Client]:
        """Return the connected clients of all users, the most recently seen first."""
        store = self._runtime.store
        values = [await store.get(key) for key in await store.keys(PREFIX)]
        found = [Client(**orjson.loads(value)) for value in values if value is not None]
        return sorted(found, key=lambda each: -each.seen_at)

    def _client(
        self,
        client_id: str,
        caller: Caller,
        protocol: str,
        capabilities: dict[str, Any],
        *,
        handshake: bool = True,
    ) -> Client:
        now = self._now()
        return Client(
            id=client_id,
            user=caller.identity.user,
            name=caller.client,
            version=caller.version,
            protocol=protocol[:MAX_NAME],
            session=self._session_id(caller),
            capabilities=capabilities,
            handshake=handshake,
            opened_at=now,
            seen_at=now,
            host=self._runtime.hosts.name,
        )

    async def _write(self, client: Client) -> Client:
        key = _prefix(client.user) + client.id
        self._known[key] = client, time.monotonic()
        self._known.move_to_end(key)
        if len(self._known) > MAX_CACHED:
            self._known.popitem(last=False)
        await self._runtime.store.put(key, orjson.dumps(client._asdict()), ttl=CONNECTION_SECONDS)
        return client

    def _now(self) -> float:
        return self._runtime.store.now()


def _prefix(user: str) -> str:
    """Return the key prefix for a user's clients: a hash, because a user's name may be too long for a key."""
    return f"{PREFIX}{hashlib.sha256(user.encode()).hexdigest()[:32]}/"
