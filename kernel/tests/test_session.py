"""What a session remembers, for how long, and what it logs."""

from __future__ import annotations

import asyncio
import logging

import orjson
import pytest
from jackfield import Intent
from jackfield.session.intents import apply_intents
from jackfield.session.session import Session, SessionFormatError, State
from jackfield.store import MemoryStore

DAY = 24 * 3600


def test_the_last_five_turns_survive_a_restart() -> None:
    async def main() -> Session | None:
        store = MemoryStore()
        session = Session("voice", "1.0.0", session_id="s")
        for number in range(1, 8):
            session.turn.calls = number
            session.begin_turn()
        await session.save(store)
        return await Session.resume("s", store)

    kept = asyncio.run(main())
    assert kept is not None
    assert kept.turn.number == 8
    assert [(turn.number, turn.calls) for turn in kept.history] == [(n, n) for n in range(3, 8)]


@pytest.mark.parametrize(("seconds", "there"), [(DAY - 1, True), (DAY + 1, False)])
def test_a_session_can_be_resumed_for_a_day(seconds: int, there: bool) -> None:
    now = 1_000_000.0

    async def main() -> Session | None:
        nonlocal now
        store = MemoryStore(clock=lambda: now)
        await Session("text", "1.0.0", session_id="s").save(store)
        now += seconds
        return await Session.resume("s", store)

    assert (asyncio.run(main()) is not None) is there


def test_a_session_saved_by_another_version_is_rejected_with_an_explanation() -> None:
    async def main() -> None:
        store = MemoryStore()
        await Session("text", "1.0.0", session_id="s").save(store)
        saved = orjson.loads(await store.get("session/s") or b"")
        await store.put("session/s", orjson.dumps({**saved, "format": saved["format"] - 1}))
        with pytest.raises(SessionFormatError, match="a different version of Jackfield; start a new session"):
            await Session.resume("s", store)

    asyncio.run(main())


def test_a_copy_of_a_session_is_out_of_date_once_another_process_has_changed_it() -> None:
    async def main() -> None:
        store = MemoryStore()
        await Session("text", "1.0.0", session_id="s").save(store)
        copy, other = await resumed(store), await resumed(store)
        assert await copy.is_current(store)
        assert await copy.save_if_unchanged(store)
        assert not await other.is_current(store)
        assert not await other.save_if_unchanged(store)
        assert await copy.is_current(store)

    asyncio.run(main())


def test_a_copy_of_a_session_is_out_of_date_once_another_process_has_taken_it_over() -> None:
    async def main() -> None:
        store = MemoryStore()
        await Session("text", "1.0.0", session_id="s").save(store)
        copy, owner = await resumed(store), await resumed(store)
        owner.epoch = 7
        # Nothing is removed before the new owner has saved the session.
        await owner.remove_superseded(store)
        assert await copy.is_current(store)
        await owner.save(store)
        await owner.remove_superseded(store)
        assert not await copy.is_current(store)
        assert not await copy.save_if_unchanged(store)
        assert (await resumed(store)).epoch == 7

    asyncio.run(main())


def test_a_session_that_is_taken_over_while_it_is_loaded_is_found() -> None:
    class TakenOver(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            if key == "session/s" and (found := await self.take(key)):
                await self.put("session/s@0000000000000007", found)
            return await super().get(key)

    async def main() -> None:
        store = TakenOver()
        await Session("text", "1.0.0", session_id="s").save(store)
        assert (await resumed(store)).epoch == 7

    asyncio.run(main())


def test_a_session_that_was_deleted_during_a_call_is_not_saved_again() -> None:
    async def main() -> None:
        store = MemoryStore()
        await Session("text", "1.0.0", session_id="s").save(store)
        copy = await resumed(store)
        await store.delete("session/s")
        assert not await copy.save_if_unchanged(store)
        assert await Session.resume("s", store) is None

    asyncio.run(main())


async def resumed(store: MemoryStore) -> Session:
    found = await Session.resume("s", store)
    assert found is not None
    return found


def test_an_illegal_state_transition_is_rejected_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    session = Session("voice", "1.0.0", session_id="s")
    with caplog.at_level(logging.WARNING):
        assert session.transition(State.READY)
        assert caplog.text == ""
        assert not session.transition(State.EXECUTING_TOOL)
    assert "session s: invalid transition from ready to executing_tool" in caplog.text
    assert session.state is State.READY


def test_a_refused_intent_is_logged_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    session = Session("voice", "1.0.0", session_id="s")
    with caplog.at_level(logging.WARNING):
        applied, refused = apply_intents((Intent("HANG_UP"),), session, {})
    assert not applied
    assert [each.type for each in refused] == ["HANG_UP"]
    assert "session s: intent HANG_UP rejected: no plugin handles it" in caplog.text
