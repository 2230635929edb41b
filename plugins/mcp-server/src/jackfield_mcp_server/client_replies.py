"""Replies from clients with a handshake to the server's questions, whichever host the replies reach."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

import mcp_types as t
from mcp.shared.exceptions import MCPError

from jackfield_mcp_server.host_messages import HostMessages, Json

_ASKED = re.compile(r"jackfield-[0-9a-f]{24}")

_Name = tuple[str, str]
"""The id of the connection, and the id of a question."""


def new_question_id() -> str:
    """Return a new question id, which no other host uses."""
    return f"jackfield-{os.urandom(12).hex()}"


class WaitingQuestions:
    """The questions of this host that have no reply yet."""

    def __init__(self, messages: HostMessages) -> None:
        self._messages = messages
        self._waiting: dict[_Name, asyncio.Future[Json]] = {}
        messages.on("reply", self._receive)

    @contextmanager
    def expecting(self, name: _Name) -> Iterator[asyncio.Future[Json]]:
        """Expect the reply to a question."""
        future = self._waiting[name] = asyncio.get_running_loop().create_future()
        try:
            yield future
        finally:
            del self._waiting[name]

    async def deliver(self, name: _Name, reply: Json) -> None:
        """Deliver a reply: on this host, or to the host that asked."""
        if name in self._waiting:
            self._settle(name, reply)
        else:
            await self._messages.send("reply", name=name, reply=reply)

    def _receive(self, message: Json) -> None:
        connection, asked_id = message["name"]
        self._settle((connection, asked_id), message["reply"])

    def _settle(self, name: _Name, reply: Json) -> None:
        future = self._waiting.get(name)
        if future is not None and not future.done():
            future.set_result(reply)


class ClientReplies:
    """The replies of one connection."""

    def __init__(self, waiting: WaitingQuestions, connection: str) -> None:
        self._waiting = waiting
        self._connection = connection

    @contextmanager
    def expecting(self, asked_id: str) -> Iterator[Awaitable[Json]]:
        """Expect a reply to a question; awaiting it returns the result or raises the client's error."""
        with self._waiting.expecting((self._connection, asked_id)) as future:
            yield _reply(future)

    async def deliver(self, message: Json) -> None:
        """Deliver a reply; drop a reply that does not answer one of the server's questions."""
        asked_id = message.get("id")
        if isinstance(asked_id, str) and _ASKED.fullmatch(asked_id):
            await self._waiting.deliver((self._connection, asked_id), message)


async def _reply(future: asyncio.Future[Json]) -> Json:
    message = await future
    if "error" in message:
        raise _error(message["error"])
    result = message.get("result")
    return result if isinstance(result, dict) else {}


def _error(error: Any) -> MCPError:
    message = error.get("message") if isinstance(error, dict) else None
    return MCPError(t.INTERNAL_ERROR, str(message or "the client answered with an error")[:500])
