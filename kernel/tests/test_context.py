"""The voice of a session, as a handler sees it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from jackfield import Intent
from jackfield.invocation import HandlerContext
from jackfield.session.session import Session, State


def context(session: Session) -> HandlerContext:
    async def nobody(*_: Any) -> Any:
        raise AssertionError("no tool is called here")

    return HandlerContext(cast("Any", SimpleNamespace(session=session)), {}, nobody)


@pytest.mark.parametrize("mode", ["text", "voice"])
def test_voice_is_active_during_a_voice_session(mode: Any) -> None:
    session = Session(mode, "1.0.00000000")
    assert context(session).voice.active is (mode == "voice")
    session.transition(State.TERMINATED)
    assert context(session).voice.active is False


def test_a_handler_changes_the_voice_with_intents() -> None:
    given = context(Session("voice", "1.0.00000000"))
    assert given.voice.end() == Intent("END_VOICE_SESSION", {"after": "current_turn"})
    assert given.voice.end("farewell_spoken") == Intent("END_VOICE_SESSION", {"after": "farewell_spoken"})
    assert given.audio.suppress() == Intent("SUPPRESS_AUDIO", {"value": True})
    assert given.audio.suppress(False) == Intent("SUPPRESS_AUDIO", {"value": False})
