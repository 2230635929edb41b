"""The settings for speech and for pruning the store take effect."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from host_harness import HostFolder, running_host, scripted_provider, wait_until
from jackfield_scripted import ScriptedModel
from jackfield_sessions import manager


async def waits(model: ScriptedModel) -> None:
    await model.hears()


def audio(model: ScriptedModel) -> Any:
    """Return the audio settings that the provider got."""
    (update,) = [each for each in model.received if each["type"] == "session.update"]
    return update["session"]["audio"]


def test_voice_language_and_silence_reach_the_provider_and_the_clients_language_wins(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        spoken: dict[str, Any] = {"voice": "cedar", "language": "de", "silence_ms": 900}
        async with (
            scripted_provider(waits, waits) as served,
            running_host(host_folder, served, **spoken) as host,
        ):
            async with host.client("voice"):
                told = audio(served.server.models[0])
                assert told["output"]["voice"] == "cedar"
                assert told["input"]["transcription"]["language"] == "de"
                assert told["input"]["turn_detection"]["silence_duration_ms"] == 900
            async with host.client("voice", language="pt-BR"):
                assert audio(served.server.models[1])["input"]["transcription"]["language"] == "pt"

    asyncio.run(main())


def test_expired_entries_are_removed_at_the_configured_interval(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "MAINTENANCE_SECONDS", 0.01)

    async def main() -> None:
        for seconds, cleared in ((0.01, True), (3600.0, False)):
            async with (
                scripted_provider(waits) as served,
                running_host(host_folder, served, prune_seconds=seconds) as host,
            ):
                store = host.sessions.runtime.store
                pruned: list[int] = []

                async def prune(pruned: list[int] = pruned) -> int:
                    pruned.append(1)
                    return 0

                monkeypatch.setattr(store, "prune", prune)
                if cleared:
                    await wait_until(lambda pruned=pruned: len(pruned) >= 2)  # type: ignore[misc]
                else:
                    await asyncio.sleep(0.2)
                    assert not pruned

    asyncio.run(main())
