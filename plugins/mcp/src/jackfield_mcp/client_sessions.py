"""The session of an MCP client: one for each user and client program, on every host.

Its id is derived from the user and the client's name. So every host finds the same session, without a
handshake and after a restart, and a repeated call finds its first outcome.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any
from weakref import WeakValueDictionary

import orjson
from jackfield.registry.registry import RegistryError
from jackfield.session.session import Session
from jackfield.toolsets import Toolset
from jackfield_sessions.manager import SessionManager

from jackfield_mcp.caller import Caller
from jackfield_mcp.server_key import derive, key_from_store


class ClientSessions:
    """Finds or opens the sessions of MCP clients."""

    def __init__(self, sessions: SessionManager, key: bytes | None) -> None:
        """Without a `key`, the hosts share one in the store."""
        self._sessions = sessions
        self._key = key
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def key(self) -> bytes:
        """Return the key of the server."""
        if self._key is None:
            self._key = await key_from_store(self._sessions.runtime.store)
        return self._key

    def toolset(self, caller: Caller) -> Toolset | None:
        """Return the toolset of a client's session."""
        return self._sessions.runtime.toolsets.choose(**caller.identity.session_fields)

    async def open(self, caller: Caller) -> Session:
        """Return the session of a client; raise `SessionRefused` if the user may not have one now."""
        sessions, identity = self._sessions, caller.identity
        if sessions.draining or identity.session:
            await sessions.admission.admit(identity)
        toolset = self.toolset(caller)
        session_id = session_id_of(caller, toolset)
        secret = derive(await self.key(), f"session/{session_id}")
        session = await self._find(session_id, secret)
        if session is not None:
            return session
        # Clients of one user may start at the same time, and only one of them opens the session.
        async with self._locks.setdefault(session_id, asyncio.Lock()):
            session = await self._find(session_id, secret)
            if session is not None:
                return session
            return await sessions.runtime.open_session(
                identity.mode or "text",
                **{**identity.session_fields, "toolset": toolset},
                session_id=session_id,
                secret=secret,
            )

    async def _find(self, session_id: str, secret: str) -> Session | None:
        """Return a usable session; open a new one if it has ended or its key has changed."""
        live = self._sessions.live.get(session_id)
        if live is not None:
            return live.session
        try:
            session = await self._sessions.direct_calls.load(session_id, repin=True)
        except RegistryError:
            return None
        usable = session is not None and session.active and session.verify_secret(secret)
        return session if usable else None


def session_id_of(caller: Caller, toolset: Toolset | None = None) -> str:
    """Return the id of a client's session.

    The roles, the mode and the toolset are part of it: a session keeps those that it was opened with, and
    its client is shown the same tools.
    """
    identity = caller.identity
    parts: list[Any] = [identity.user, sorted(identity.roles), identity.mode, caller.client]
    if toolset is not None:
        parts.append(toolset.key)
    return hashlib.sha256(b"mcp\n" + orjson.dumps(parts)).hexdigest()[:32]
