"""The session of an MCP client. Each connection has one session, which all hosts share.

The session's id is derived from the user, the client's name and the connection's id, so every host finds it.
Clients without a handshake have no connection; those with the same user and name share a session. Call keys
belong to the user and the client's name: a client that reconnects and repeats a call gets the first outcome.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any
from weakref import WeakValueDictionary

import orjson
from jackfield.registry.registry import RegistryError
from jackfield.session.session import Session
from jackfield.store import ClaimState
from jackfield.toolsets import Toolset
from jackfield_sessions.manager import SessionManager

from jackfield_mcp_server.caller import Caller
from jackfield_mcp_server.server_key import derive, key_from_store

KEY_SECONDS = 7 * 86400.0
"""How long the store keeps the session in which a key was first used; longer than it keeps outcomes."""


class ClientSessions:
    """Finds or opens the sessions of MCP clients."""

    def __init__(self, sessions: SessionManager, key: bytes | None) -> None:
        """Without a `key`, the hosts share one in the store."""
        self._sessions = sessions
        self._key = key
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def key(self) -> bytes:
        """Return the server's key."""
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
        return await self._open(caller, toolset, session_id_of(caller, toolset))

    async def of_key(self, caller: Caller, session: Session, call_id: str) -> Session:
        """Return the session in which a call with this key was first made; `session` if it is a new key."""
        if not caller.connection:
            return session
        toolset = self.toolset(caller)
        name = f"mcp/key/{session_id_of(caller._replace(connection=''), toolset)}/{call_id}"
        store, own = self._sessions.runtime.store, session.id.encode()
        # A claim with a result is recorded once, whichever connection comes first.
        claim = await store.claim(name, b"", ttl=KEY_SECONDS, result=own)
        first = claim.result if claim.state is ClaimState.DONE else own
        return session if first in (None, own) else await self._open(caller, toolset, first.decode())

    async def _open(self, caller: Caller, toolset: Toolset | None, session_id: str) -> Session:
        sessions, identity = self._sessions, caller.identity
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
        """Return a session; None if there is none, if it has ended, or if the server's key has changed."""
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

    The id depends on the roles, the mode and the toolset too: a session keeps those that it was opened with,
    and its client sees the same tools.
    """
    identity = caller.identity
    parts: list[Any] = [identity.user, sorted(identity.roles), identity.mode, caller.client]
    if caller.connection:
        parts.append(["connection", caller.connection])
    if toolset is not None:
        parts.append(toolset.key)
    return hashlib.sha256(b"mcp\n" + orjson.dumps(parts)).hexdigest()[:32]
