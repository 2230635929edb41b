"""What happened in a session, in its order."""

from __future__ import annotations

from typing import Any

from jackfield.confirmation import Confirmations
from jackfield.contract.errors import ErrorType
from jackfield.ledger import CallLedger
from jackfield.outcomes import CallState
from jackfield.store import Store

from jackfield_sessions import events
from jackfield_sessions.archive.sessions import entries
from jackfield_sessions.journal import transcript

_UNTOLD = frozenset({"session_status", events.TAKEN})
"""Events that say nothing one would want to know later."""

Line = dict[str, Any]


async def record(store: Store, session_id: str) -> list[Line]:
    """What was said, and what tools did as far as that is still kept."""
    said = [{"type": "message", **line} async for line in entries(store, transcript(session_id))]
    done = [
        {name: value for name, value in line.items() if name != events.SIGNED}
        async for line in entries(store, events.stream(session_id))
        if line["type"] not in _UNTOLD
    ]
    await _mark_undecided(store, session_id, done)
    # The events have everything in its order, and the transcript what was said before the first of them.
    lately = sum(line["type"] == "message" for line in done)
    return said[: max(0, len(said) - lately)] + done


async def _mark_undecided(store: Store, session_id: str, lines: list[Line]) -> None:
    """Mark calls that nobody decided about in time, and those in doubt; no event tells the first."""
    states: dict[Any, CallState] = {}
    for pending in await Confirmations(store).of_session(session_id):
        status = await CallLedger(store).status_of(pending)
        states[pending.tool_id, pending.call_id] = status.state
    for line in lines:
        if line["type"] == "confirmation_required" or is_waiting(line):
            state = states.get((line.get("tool"), line.get("callId")))
            if state is CallState.EXPIRED:
                line["expired"] = True
            elif state is CallState.IN_DOUBT:
                line["inDoubt"] = True


def is_waiting(line: Line) -> bool:
    """Whether a line says that a call waits for its user."""
    return (line["type"], line.get("errorType")) == ("tool_error", ErrorType.CONFIRMATION_REQUIRED)
