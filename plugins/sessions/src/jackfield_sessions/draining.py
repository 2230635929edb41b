"""The end of a host: no new work, running tools finish, and every session is handed on."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from jackfield.protocol.close_codes import RESTARTING

from jackfield_sessions.admission import Admission
from jackfield_sessions.desk import Desk
from jackfield_sessions.talk import Talk

_log = logging.getLogger(__name__)

HANG_UP_SECONDS = 2.0
"""How long it may take to hang up at the model and to keep what was said, when the host stops."""


async def drain(talks: dict[str, Talk], admission: Admission, desk: Desk, seconds: float) -> None:
    """Hand every session on as soon as its own tools are done, or when the time is over."""
    deadline = time.monotonic() + seconds
    # One that was being opened when the draining began is handed on as well.
    while talks or (admission.opening and time.monotonic() < deadline):
        held = list(talks.values())
        for talk in held:
            talk.feed.pass_on({"type": "going_away", "reason": RESTARTING.reason})
        await asyncio.gather(asyncio.sleep(0.01), *(_hand_on(talk, deadline) for talk in held))
        for talk in held:
            talks.pop(talk.session.id, None)
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            await desk.settle()


async def _hand_on(talk: Talk, deadline: float) -> None:
    """Let a session's tools finish, then let go of it; what is late is left to whoever resumes it."""
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            await talk.conversation.settle()
    except TimeoutError:
        _log.warning("session %s: a tool has not finished in time", talk.session.id)
    try:
        async with asyncio.timeout(HANG_UP_SECONDS):
            await talk.stop(RESTARTING)
    except TimeoutError:
        await talk.conversation.journal.keep(counters=True)
        talk.feed.close(RESTARTING)
