"""Calls that wait for their user's word: tokens that only the client holds, good for one use.

The model never sees a token, so it cannot confirm for the user. What is kept under a token's hash binds it to
the session, the user, the tool and the exact arguments, and survives a restart. A token is derived from the
session's own secret: a client that comes back gets it again, and whoever reads the store cannot make one.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, NamedTuple

import orjson

from jackfield.contract.preview import render
from jackfield.governance import Call
from jackfield.session.session import Session
from jackfield.store import Store


class Pending(NamedTuple):
    """A call that waits for its user's word."""

    tool_id: str
    args: dict[str, Any]
    call_id: str | None
    key: str
    """The name under which the approved call runs, once."""


def token_of(session: Session, confirmation: str) -> str:
    """The token of a confirmation by its public name."""
    return session.derive(f"confirmation/{confirmation}")


class Confirmations:
    """Asks for a user's word, and redeems it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def ask(self, call: Call, *, seconds: float) -> dict[str, Any]:
        """Let a call wait: tell the client, with the token; what may be told to the model comes back."""
        card = render(call.tool.manifest.preview, call.tool.id, call.args)
        preview = "\n".join([card, *call.remarks])
        confirmation = secrets.token_hex(8)
        token = token_of(call.session, confirmation)
        kept = {
            "session": call.session.id,
            "user": call.session.user,
            "tool": call.tool.id,
            "args": call.args,
            "callId": call.call_id,
        }
        await self._store.put(_key(token), orjson.dumps(kept), ttl=seconds)
        request = {"tool": call.tool.id, "preview": preview, "expires_at": self._store.now() + seconds}
        told = {**request, "confirmation": confirmation, "callId": call.call_id, "args": call.args}
        call.session.publish("confirmation_required", {**told, "token": token})
        return request

    async def redeem(self, session: Session, token: str) -> Pending | None:
        """The call a token stands for, once; nothing when it is unknown, used, expired or somebody else's."""
        key = _key(token)
        # Looked at before it is taken, so that a stranger cannot use up what is not his.
        if not _belongs(await self._store.get(key), session):
            return None
        kept = await self._store.take(key)
        if kept is None:
            return None
        wire = orjson.loads(kept)
        return Pending(wire["tool"], wire["args"], wire["callId"], f"confirmed-{key.rpartition('/')[2]}")


def _belongs(kept: bytes | None, session: Session) -> bool:
    if kept is None:
        return False
    wire = orjson.loads(kept)
    return bool(wire["session"] == session.id and wire["user"] == session.user)


def _key(token: str) -> str:
    # The hash, so that whoever reads the store cannot confirm for the user either.
    return f"confirmation/{hashlib.sha256(token.encode()).hexdigest()}"
