"""A provider's trouble is told to the user in its sentence and written to the log."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from jackfield.transport.troubles import TROUBLES
from jackfield_sessions import continuity
from jackfield_sessions.notices import Notice
from jackfield_testkit.providers.model import ScriptedModel
from talks import WAYS, talk

CODES = [
    "session_expired",
    "rate_limit_exceeded",
    "server_error",
    "context_length_exceeded",
    "invalid_request_error",
]


@pytest.mark.parametrize("code", CODES)
def test_what_the_user_and_the_log_are_told(
    code: str, site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")
    there = WAYS["openai-realtime"]

    async def fails(model: ScriptedModel) -> None:
        await model.hears_speech("are you there")
        await model.errs(code, "so it was said")

    async def works(model: ScriptedModel) -> None:
        await model.hears()

    async def main() -> Notice:
        async with talk(there, site, tmp_path, fails, works) as user:
            await user.says("are you there")
            return (await user.until(lambda: user.of(Notice)))[0]

    with caplog.at_level(logging.WARNING):
        notice = asyncio.run(main())
    kind = TROUBLES[code]
    assert notice == Notice(code, kind.sentence, kind.suggestion)
    assert f": {code} " in caplog.text


def test_who_is_not_answered_after_several_tries_is_told_to_wait_no_longer(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")
    monkeypatch.setattr(continuity, "RETRY_SECONDS", (0.0, 0.0))

    async def fails_until_asked_anew(model: ScriptedModel) -> None:
        while "and now?" not in (await model.hears()).text:
            await model.errs("server_error", "out of order")
        await model.says("Here I am.")

    async def main() -> list[Notice]:
        async with talk(WAYS["openai-chat"], site, tmp_path, fails_until_asked_anew) as user:
            await user.says("are you there")
            await user.turn_ends(1)
            notices = user.of(Notice)
            await user.says("and now?")
            await user.until(lambda: "Here I am." in user.words)
            return notices

    first, second, last = asyncio.run(main())
    kind = TROUBLES["server_error"]
    assert first == second == Notice("server_error", kind.sentence, kind.suggestion)
    assert last.text == kind.sentence
    assert "did not help" in last.suggestion
