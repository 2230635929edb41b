"""A provider's trouble is told to the user in its sentence and written to the log."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from jackfield.transport.troubles import TROUBLES
from jackfield_conversation.notices import Notice
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
