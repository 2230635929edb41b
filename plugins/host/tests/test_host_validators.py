"""The validators of requests are loaded once the host is ready; a failure does not stop it."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest
from jackfield_host import validators


@pytest.fixture(autouse=True)
def not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validators, "_loaded", threading.Event())


def test_the_event_loop_goes_on_while_the_validators_are_loaded() -> None:
    async def main() -> None:
        going_on = threading.Event()
        preloading = asyncio.create_task(validators.preload_validators(and_then=going_on.wait))
        await asyncio.sleep(0)
        request = asyncio.create_task(validators.load_validators())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not request.done(), "a request waits for the validators"
        going_on.set()
        await asyncio.gather(preloading, request)

    asyncio.run(main())


def test_validators_that_cannot_be_loaded_are_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(validators, "_MODULES", ("jackfield_host.missing",))
    with caplog.at_level(logging.ERROR):
        asyncio.run(validators.preload_validators(and_then=lambda: None))
    assert "cannot load the validators of requests" in caplog.text
    assert "No module named 'jackfield_host.missing'" in caplog.text
    with pytest.raises(ModuleNotFoundError):
        asyncio.run(validators.load_validators())
