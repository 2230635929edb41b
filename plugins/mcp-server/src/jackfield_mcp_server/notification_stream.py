"""The stream that tells a client with a handshake that the tools have changed (`GET /mcp`)."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import mcp_types as t
from jackfield.store import StoreUnavailableError
from jackfield_sessions.admission import Admission, Identity, SessionRefused
from jackfield_sessions.manager import SessionManager
from starlette.types import Receive, Send

from jackfield_mcp_server.exchange import EVENT_HEADERS, PING, PING_SECONDS, disconnected, event, send_error

_CHANGED = event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


class NotificationStreams:
    """The open streams of this host."""

    def __init__(self, sessions: SessionManager, limit: int) -> None:
        self._sessions = sessions
        self._limit = limit
        self._open: set[asyncio.Event] = set()

    def notify(self) -> None:
        """Tell all clients that the tools have changed."""
        for changed in self._open:
            changed.set()

    async def serve(self, identity: Identity, admission: Admission, receive: Receive, send: Send) -> None:
        """Serve a stream until the client disconnects, the host stops or the user loses access."""
        if len(self._open) >= self._limit:
            await send_error(send, 503, t.INTERNAL_ERROR, "Too many notification streams; try again later.")
            return
        changed = asyncio.Event()
        self._open.add(changed)
        ends = {
            asyncio.create_task(disconnected(receive)),
            asyncio.create_task(self._wait_stopping()),
        }
        try:
            await send({"type": "http.response.start", "status": 200, "headers": EVENT_HEADERS})
            body = PING
            while True:
                await send({"type": "http.response.body", "body": body, "more_body": True})
                body = await _next(changed, ends)
                if any(end.done() for end in ends) or not await _has_access(identity, admission):
                    break
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._open.discard(changed)
            for end in ends:
                end.cancel()

    async def _wait_stopping(self) -> None:
        await self._sessions.stopping.wait()


async def _next(changed: asyncio.Event, ends: set[asyncio.Task[None]]) -> bytes:
    """Return the next thing to send: a notification, or a comment after some time."""
    waiting = asyncio.create_task(changed.wait())
    try:
        await asyncio.wait({waiting, *ends}, timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if not changed.is_set():
        return PING
    changed.clear()
    return _CHANGED


async def _has_access(identity: Identity, admission: Admission) -> bool:
    if identity.expires is not None and time.time() >= identity.expires:
        return False
    with suppress(StoreUnavailableError):
        try:
            await admission.check_ban(identity)
        except SessionRefused:
            return False
    return True
