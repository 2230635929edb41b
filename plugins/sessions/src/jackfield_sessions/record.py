"""What the events of a session say about one of its calls."""

from __future__ import annotations

from typing import Any

from jackfield.session.session import Session
from jackfield.store import Store

from jackfield_sessions.events import replay

Message = dict[str, Any]


async def of_call(session: Session, store: Store, call_id: str) -> list[Message]:
    """Everything that was told about a call, in order."""
    return [each for each in await _told(session, store) if each.get("callId") == call_id]


async def is_published(session: Session, store: Store, event: str, fields: Message) -> bool:
    """Whether an outcome is in the event log already, however long it took."""
    expected = {"type": event, **fields}
    expected.pop("durationMs", None)
    told = await of_call(session, store, fields["callId"])
    return any(expected.items() <= each.items() for each in told)


async def _told(session: Session, store: Store) -> list[Message]:
    return (await replay(session, store, 0)).messages
