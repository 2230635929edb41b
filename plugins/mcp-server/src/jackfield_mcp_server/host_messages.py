"""Messages between the hosts of one store, for requests that reach one host but concern a call on another.

A proxy may pass each of a client's requests to a different host, such as the cancellation of a call or the
reply to a question. All hosts follow one stream in the store, and each handles the messages that concern its
own calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import orjson
from jackfield.store import StoreUnavailableError
from jackfield_sessions.manager import SessionManager

_log = logging.getLogger(__name__)

STREAM = "mcp/messages"

KEPT_SECONDS = 300.0
"""How long a message waits for hosts that cannot reach the store."""

MAX_BYTES = 65536
"""Maximum size of a message; a larger one is dropped."""

RETRY_SECONDS = 1.0
"""The pause before the stream is followed again after the store was unavailable."""

Json = dict[str, Any]
Receiver = Callable[[Json], object]


class HostMessages:
    """Sends messages to the other hosts, and receives theirs."""

    def __init__(self, sessions: SessionManager) -> None:
        self._sessions = sessions
        self._store = sessions.runtime.store
        self._host = sessions.host_id
        self._receivers: dict[str, Receiver] = {}

    def on(self, kind: str, receive: Receiver) -> None:
        """Call a function for every message of this kind from another host."""
        self._receivers[kind] = receive

    async def start(self) -> None:
        """Receive the messages that are sent from now on, until the host closes."""
        begin = await self._store.append(STREAM, self._encode("begin", {}), ttl=KEPT_SECONDS)
        self._sessions.spawn(self._follow(begin))

    async def send(self, kind: str, **fields: Any) -> None:
        """Send a message to all other hosts; the store keeps it for a while."""
        message = self._encode(kind, fields)
        if len(message) <= MAX_BYTES:
            await self._store.append(STREAM, message, ttl=KEPT_SECONDS)

    def send_soon(self, kind: str, **fields: Any) -> None:
        """Send a message in the background; it is lost if the store is unavailable."""
        self._sessions.spawn(self._send_quietly(kind, fields))

    async def _send_quietly(self, kind: str, fields: Json) -> None:
        try:
            await self.send(kind, **fields)
        except StoreUnavailableError as error:
            _log.warning("other hosts were not notified of a %s: %s", kind, error)

    def _encode(self, kind: str, fields: Json) -> bytes:
        return orjson.dumps({**fields, "kind": kind, "host": self._host})

    async def _follow(self, after: int) -> None:
        while True:
            try:
                async for entry in self._store.follow(STREAM, after=after):
                    after = entry.id
                    self._receive(orjson.loads(entry.value))
            except StoreUnavailableError as error:
                _log.warning("messages from other hosts are delayed: %s", error)
            await asyncio.sleep(RETRY_SECONDS)

    def _receive(self, message: Json) -> None:
        receive = self._receivers.get(message["kind"])
        if receive is not None and message["host"] != self._host:
            receive(message)
