"""How a host listens and speaks, and how often it clears its store, as its settings say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asking import until
from hosting import Workshop, hosted, provided
from jackfield_scripted import ScriptedModel
from jackfield_sessions import manager


async def waits(model: ScriptedModel) -> None:
    await model.hears()


def audio(model: ScriptedModel) -> Any:
    """What the provider was told about sound."""
    (update,) = [each for each in model.received if each["type"] == "session.update"]
    return update["session"]["audio"]


def test_voice_language_and_silence_reach_the_provider_and_a_client_knows_its_language_best(
    workshop: Workshop,
) -> None:
    async def main() -> None:
        spoken: dict[str, Any] = {"voice": "cedar", "language": "de", "silence_ms": 900}
        async with provided(waits, waits) as served, hosted(workshop, served, **spoken) as host:
            async with host.client("voice"):
                told = audio(served.server.models[0])
                assert told["output"]["voice"] == "cedar"
                assert told["input"]["transcription"]["language"] == "de"
                assert told["input"]["turn_detection"]["silence_duration_ms"] == 900
            async with host.client("voice", language="pt-BR"):
                assert audio(served.server.models[1])["input"]["transcription"]["language"] == "pt"

    asyncio.run(main())


def test_the_store_is_cleared_of_what_has_expired_as_often_as_said(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "MAINTENANCE_SECONDS", 0.01)

    async def main() -> None:
        for seconds, cleared in ((0.01, True), (3600.0, False)):
            async with provided(waits) as served, hosted(workshop, served, prune_seconds=seconds) as host:
                assert host.house
                store = host.house.sessions.runtime.store
                pruned: list[int] = []

                async def prune(pruned: list[int] = pruned) -> int:
                    pruned.append(1)
                    return 0

                monkeypatch.setattr(store, "prune", prune)
                if cleared:
                    await until(lambda pruned=pruned: len(pruned) >= 2)  # type: ignore[misc]
                else:
                    await asyncio.sleep(0.2)
                    assert not pruned

    asyncio.run(main())
