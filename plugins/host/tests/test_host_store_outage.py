"""A store outage: tools fail closed, the session continues, and its events are stored later."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from host_harness import HostFolder, RunningHost, running_host, scripted_provider
from jackfield.session.session import TRANSITIONS, State
from jackfield.store import StoreUnavailableError
from jackfield_scripted import ScriptedCall, ScriptedModel

VERBS = ("put", "get", "delete", "take", "add", "claim", "complete", "append", "read")


class Outage:
    """Makes the store of a host unavailable, and available again."""

    def __init__(self, host: RunningHost, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on = False
        store = host.sessions.runtime.store
        for verb in VERBS:
            monkeypatch.setattr(store, verb, self._guarded(getattr(store, verb)))

    def _guarded(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        async def guarded(*args: Any, **options: Any) -> Any:
            if self.on:
                raise StoreUnavailableError("the store is away")
            return await verb(*args, **options)

        return guarded


@pytest.mark.parametrize("mode", ["text", "voice"])
def test_without_the_store_tools_fail_closed_and_the_session_continues_with_events_later(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    got: list[Any] = []

    async def hears(model: ScriptedModel) -> None:
        await (model.hears_speech("hello") if mode == "voice" else model.hears())

    async def script(model: ScriptedModel) -> None:
        await hears(model)
        await model.says("Hello.")
        await hears(model)
        got.extend((await model.calls(ScriptedCall("hst_note", {"text": "it"}))).values())
        await model.says("It could not be noted.")
        await hears(model)
        got.extend((await model.calls(ScriptedCall("hst_note", {"text": "it"}))).values())
        await model.says("Now it is.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            host.client(mode) as ada,
        ):

            async def asks(words: str) -> None:
                await (ada.speak() if mode == "voice" else ada.say("text", text=words))

            await asks("hello")
            await ada.until_type("turn_complete")
            # All events of the turn have arrived.
            await ada.until(lambda: ada.states[-1:] == ["listening" if mode == "voice" else "ready"])
            outage = Outage(host, monkeypatch)
            outage.on = True
            before = ada.last_event
            began = len(ada.of("speech_started"))
            await asks("note it")
            if mode == "voice":
                # Audio is not stored, so the outage does not delay it.
                await ada.until(lambda: len(ada.of("speech_started")) > began)
                await ada.until(lambda: ada.audio_ms() > 60 * 5)
            await ada.until(lambda: got)
            await asyncio.sleep(0.2)
            assert ada.last_event == before
            async with host.connected("text") as bob:
                await bob.say("start")
                assert (await bob.until_closed())[0] == 1011
                assert bob.of("error")[0]["code"] == "store_unavailable"
            assert not ada.closed
            outage.on = False
            await ada.until(lambda: "It could not be noted." in ada.said("assistant"))
            await asks("and now?")
            await ada.until(lambda: "Now it is." in ada.said("assistant"))
            ids = [event["id"] for event in ada.events]
            assert ids == list(range(1, len(ids) + 1))
            assert all(State(two) in TRANSITIONS[State(one)] for one, two in itertools.pairwise(ada.states))
            async with host.client(mode, token=ada.token) as fresh:
                await fresh.until(lambda: fresh.last_event >= ada.last_event)
                assert fresh.events[: len(ids)] == ada.events[: len(ids)]

    asyncio.run(main())
    assert [each["ok"] for each in got] == [False, True]
    assert got[0]["error"]["retryable"]
    assert "so the call was not run" in got[0]["error"]["message"]
    assert host_folder.effects("done it") == 1


def test_a_client_that_cannot_catch_up_is_disconnected(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with scripted_provider() as served, running_host(host_folder, served) as host:
            async with host.client("text") as ada:
                pass
            (live,) = host.sessions.live.values()
            outage = Outage(host, monkeypatch)
            outage.on = True
            async with host.connected("text") as back:
                await back.say("resume", token=ada.token)
                assert (await back.until_closed())[0] == 1011
            assert not live.hub.has_clients
            outage.on = False
            async with host.client("text", token=ada.token, lastEvent=ada.last_event):
                assert live.hub.has_clients

    asyncio.run(main())
