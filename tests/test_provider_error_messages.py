"""Provider errors reach the user as a message and the log as a warning."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from jackfield.transport.provider_errors import PROVIDER_ERRORS
from jackfield_scripted import ScriptedModel
from jackfield_sessions import model_connection
from provider_sessions import WAYS, provider_session

CODES = [
    "session_expired",
    "rate_limit_exceeded",
    "server_error",
    "context_length_exceeded",
    "invalid_request_error",
]


@pytest.mark.parametrize("code", CODES)
def test_every_provider_error_reaches_the_user_and_the_log(
    code: str, site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")
    there = WAYS["openai-realtime"]

    async def fails(model: ScriptedModel) -> None:
        await model.hears_speech("are you there")
        await model.fails(code, "so it was said")

    async def works(model: ScriptedModel) -> None:
        await model.hears()

    async def main() -> dict[str, Any]:
        async with provider_session(there, site, tmp_path, fails, works) as user:
            await user.says("are you there")
            return (await user.until(lambda: user.of("notification")))[0]

    with caplog.at_level(logging.WARNING):
        notice = asyncio.run(main())
    kind = PROVIDER_ERRORS[code]
    assert (notice["code"], notice["text"], notice["suggestion"]) == (code, kind.message, kind.suggestion)
    assert f": {code} " in caplog.text


def test_the_user_is_told_to_stop_waiting_after_several_failed_retries(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")
    monkeypatch.setattr(model_connection, "RETRY_SECONDS", (0.0, 0.0))

    async def fails_until_asked_anew(model: ScriptedModel) -> None:
        while "and now?" not in (await model.hears()).text:
            await model.fails("server_error", "out of order")
        await model.says("Here I am.")

    async def main() -> list[dict[str, Any]]:
        async with provider_session(WAYS["openai-chat"], site, tmp_path, fails_until_asked_anew) as user:
            await user.says("are you there")
            await user.turn_ends(1)
            notices = user.of("notification")
            await user.says("and now?")
            await user.until(lambda: "Here I am." in user.words)
            return notices

    first, second, last = asyncio.run(main())
    kind = PROVIDER_ERRORS["server_error"]
    for each in (first, second):
        told = (each["code"], each["text"], each["suggestion"])
        assert told == ("server_error", kind.message, kind.suggestion)
    assert last["text"] == kind.message
    assert "did not help" in last["suggestion"]
