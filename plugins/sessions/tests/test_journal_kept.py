"""For how long what was said is kept."""

from __future__ import annotations

import asyncio

import pytest
from jackfield.session.session import Session
from jackfield.store import MemoryStore
from jackfield_sessions.journal import Journal, transcript

WEEK = 7 * 24 * 3600


@pytest.mark.parametrize(("seconds", "lines"), [(WEEK - 1, 1), (WEEK + 1, 0)])
def test_a_transcript_is_kept_for_seven_days(seconds: int, lines: int) -> None:
    now = 1_000_000.0

    async def main() -> int:
        nonlocal now
        store = MemoryStore(clock=lambda: now)
        session = Session("text", "1.0.0", session_id="s")
        await Journal(session, store).said("user", "remember this")
        now += seconds
        return len(await store.read(transcript("s")))

    assert asyncio.run(main()) == lines
