"""What the events of a session say about one of its calls."""

from __future__ import annotations

import secrets
from typing import Any

from jackfield.session.session import Session
from jackfield.store import Store

from jackfield_host.talks.events import replay

Message = dict[str, Any]


async def of_call(session: Session, store: Store, call_id: str) -> list[Message]:
    """Everything that was told about a call, in order."""
    return [each for each in await _told(session, store) if each.get("callId") == call_id]


async def card_of(session: Session, store: Store, call_id: str) -> Message | None:
    """What its user was asked to approve before a call may run, last."""
    told = await of_call(session, store, call_id)
    return next((each for each in reversed(told) if each["type"] == "confirmation_required"), None)


async def card_with(session: Session, store: Store, token: str) -> Message | None:
    """The card of a token that its user has not decided about, unless it has expired."""
    waiting: Message | None = None
    for each in await _told(session, store):
        if each["type"] == "confirmation_required" and secrets.compare_digest(
            each["token"].encode(), token.encode()
        ):
            waiting = each
        elif waiting and each["type"] == "confirmation_settled" and each["callId"] == waiting["callId"]:
            waiting = None
    return waiting if waiting and waiting["expires_at"] > store.now() else None


async def _told(session: Session, store: Store) -> list[Message]:
    return (await replay(session, store, 0)).messages
