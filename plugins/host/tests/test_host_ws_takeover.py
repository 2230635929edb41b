"""A host that has lost a session cannot affect it any more, however late it writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from host_harness import HostFolder, RunningHost, running_host, scripted_provider
from http_client import SESSION, http_client
from jackfield.call_states import declined
from jackfield.session.session import Session
from jackfield.store import MemoryStore, Store
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_sessions.archive import all_sessions, delete, find
from jackfield_sessions.events import (
    EventLog,
    OwnershipLost,
    QueuedEvent,
    claim_ownership,
    follow,
    replay,
)
from session_views import echo, notes_behind_a_gate, numbered, saw_everything, seen_events, types


class SlowStore:
    """Delays what a host writes to its store, as a slow disk does."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        """Something waits to be written."""
        self.goes_on = asyncio.Event()
        """Set to let it be written."""
        self.done = 0
        """How much of what was held up is written."""


def store_of(host: RunningHost) -> Store:
    return host.sessions.runtime.store


@asynccontextmanager
async def slow(
    host: RunningHost, verb: str, concerned: Callable[[str, bytes], bool]
) -> AsyncIterator[SlowStore]:
    """Delay the writes of one host; other hosts on the same file are not affected."""
    store: Any = store_of(host)
    write, held = getattr(store, verb), SlowStore()

    async def writing(name: str, value: bytes, **options: Any) -> Any:
        waits = concerned(name, value)
        if waits:
            held.begun.set()
            await held.goes_on.wait()
        result = await write(name, value, **options)
        held.done += waits
        return result

    setattr(store, verb, writing)
    try:
        yield held
    finally:
        held.goes_on.set()
        setattr(store, verb, write)


def is_record(key: str, _: bytes) -> bool:
    return key.startswith(("session/", "checkpoint/"))


def has_answer(key: str, value: bytes) -> bool:
    return key.startswith(("checkpoint/", "events/")) and b"You said hello" in value


def test_state_saved_by_a_former_owner_is_never_read(any_store_folder: HostFolder) -> None:
    told: list[str] = []

    async def main() -> None:
        async with (
            scripted_provider(notes_behind_a_gate, numbered(told)) as served,
            running_host(any_store_folder, served) as here,
            running_host(any_store_folder, served) as there,
            here.client("text") as ada,
        ):
            await ada.say("text", text="note it")
            await ada.until(lambda: any_store_folder.effects("begun it"))
            await ada.until(lambda: ada.of("tool_start") and ada.states[-1:] == ["executing_tool"])
            async with slow(here, "put", is_record) as keeping, slow(here, "append", is_event) as telling:
                async with there.client("text", token=ada.token, lastEvent=ada.last_event) as moved:
                    any_store_folder.open_gate("go")
                    await moved.until_type("turn_complete")
                    await moved.say("text", text="what else?")
                    await moved.until_type("turn_complete", 2)
                # The first host is about to save its outdated state, and learns now that it lost the session.
                await ada.until(keeping.begun.is_set)
                telling.goes_on.set()
                await ada.until_closed()
                keeping.goes_on.set()
                await released_everything(here)
                assert keeping.done == 2  # The session and its checkpoint.
            kept = await find(store_of(there), ada.token.split(".")[0])
            assert kept
            assert kept.turns == 2
            async with here.client("text", token=ada.token, lastEvent=moved.last_event) as home:
                await home.say("text", text="and now?")
                await home.until(lambda: home.said("assistant"))
                assert home.said("assistant") == ["Answer 3."]
                assert "Answer 1." in told[-1]
                assert "Answer 2." in told[-1]
                assert types(seen_events(ada, moved, home), "tool_complete", "tool_error") == [
                    "tool_complete"
                ]
                assert await saw_everything(here, ada, moved, home)

    asyncio.run(main())


def test_another_host_takes_over_during_speech_and_no_event_is_lost_or_doubled(
    any_store_folder: HostFolder,
) -> None:
    """The first host finds out when its model goes on."""
    moved_on = asyncio.Event()

    async def first(model: ScriptedModel) -> None:
        await model.hears_speech("tell me a story")
        await model.speaks("Once upon a time there was a lighthouse by the sea", ms=2000)
        await moved_on.wait()
        await model.says("And its keeper slept.")
        await asyncio.Event().wait()

    async def second(model: ScriptedModel) -> None:
        await model.hears_speech("go on")
        await model.says("The light went out.")
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(first, second) as served,
            running_host(any_store_folder, served) as here,
            running_host(any_store_folder, served) as there,
            here.client("voice", plays=False) as ada,
        ):
            await ada.speak()
            await ada.until(lambda: ada.audio_ms() >= 1000)
            item = ada.of("audio_frame")[0]["item"]
            await ada.say("playback", item=item, ms=700)
            (live,) = here.sessions.live.values()
            await ada.until(lambda: live.playback.played_ms == 700)
            last = ada.last_event
            async with there.client("voice", token=ada.token, lastEvent=last) as moved:
                moved_on.set()
                assert (await ada.until_closed())[0] == 4006
                await released_everything(here)
                await moved.speak()
                await moved.until(lambda: "The light went out." in moved.said("assistant"))
                await moved.until_type("turn_complete")
                # What was on its way to the first connection arrives at the second one again, unchanged.
                late = [each for each in ada.events if each["id"] > last]
                assert moved.events[: len(late)] == late
                seen = [each for each in ada.events if each["id"] <= last] + moved.events
                numbers = [each["id"] for each in seen]
                assert numbers == sorted(set(numbers))
                # What the former owner's model said after the takeover reached nobody.
                assert "keeper" not in str(seen)
            async with there.client("voice", token=ada.token) as fresh:
                await fresh.until(lambda: fresh.last_event >= numbers[-1])
                assert [each for each in fresh.events if each["id"] <= numbers[-1]] == seen

    asyncio.run(main())


def is_event(stream: str, _: bytes) -> bool:
    return stream.startswith("events/")


async def released_everything(host: RunningHost) -> None:
    """Wait until a host has released all sessions."""
    async with asyncio.timeout(60):
        while host.sessions.live:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("verb", "asked"), [("put", 2), ("append", 1)])
def test_an_answer_is_published_once_if_its_host_is_lost_before_saving_or_before_publishing(
    any_store_folder: HostFolder, verb: str, asked: int
) -> None:
    """An answer that was not saved is requested again; a saved one is published by the next host."""
    heard: list[str] = []

    async def script(model: ScriptedModel) -> None:
        while True:
            heard.append((await model.hears()).text)
            await model.says(f"You said {heard[-1]}")

    async def main() -> None:
        async with (
            scripted_provider(script, script) as served,
            running_host(any_store_folder, served) as here,
            running_host(any_store_folder, served) as there,
            here.client("text") as ada,
            slow(here, verb, has_answer) as held,
        ):
            await ada.say("text", text="hello")
            await ada.until(held.begun.is_set)
            # No event is in transit to the first connection when the second one sends its last event id.
            await ada.until(lambda: ada.states[-1:] == ["speaking"])
            assert not ada.said("assistant")
            async with there.client("text", token=ada.token, lastEvent=ada.last_event) as moved:
                await moved.until(lambda: moved.said("assistant"))
                held.goes_on.set()
                await ada.until_closed()
                await moved.say("text", text="bye")
                await moved.until(lambda: moved.said("assistant")[1:])
                assert not ada.said("assistant")
                assert moved.said("assistant") == ["You said hello", "You said bye"]
                assert [each["answer"] for each in moved.of("message") if "answer" in each] == [1, 2]
                assert await saw_everything(there, ada, moved)
            assert heard == ["hello"] * asked + ["bye"]
            lines = await store_of(there).read(f"transcript/{ada.token.split('.')[0]}")
            assert sum(b"You said hello" in line.value for line in lines) == 1

    asyncio.run(main())


def test_the_next_host_acknowledges_a_message_that_the_first_had_saved(
    host_folder: HostFolder,
) -> None:
    def is_said(stream: str, value: bytes) -> bool:
        return stream.startswith("events/") and b'"note-1"' in value

    async def main() -> None:
        async with (
            scripted_provider(echo, echo) as served,
            running_host(host_folder, served) as here,
            running_host(host_folder, served) as there,
            here.client("text") as ada,
            slow(here, "append", is_said) as held,
        ):
            await ada.until(lambda: ada.states == ["ready"])
            await ada.say("text", text="hello", clientId="note-1")
            await ada.until(held.begun.is_set)
            async with there.client("text", token=ada.token, lastEvent=ada.last_event) as moved:
                # It was not acknowledged, so it is sent again.
                await moved.say("text", text="hello", clientId="note-1")
                await moved.until(lambda: moved.said("assistant"))
                held.goes_on.set()
                await ada.until_closed()
                await moved.say("text", text="bye", clientId="note-2")
                await moved.until(lambda: moved.said("assistant")[1:])
                assert [each["clientId"] for each in moved.of("message") if "clientId" in each] == [
                    "note-1",
                    "note-2",
                ]
                assert moved.said("assistant") == ["You said hello", "You said bye"]
                assert await saw_everything(there, ada, moved)

    asyncio.run(main())


def test_an_approval_on_another_host_is_known_to_the_next_owner(
    any_store_folder: HostFolder,
) -> None:
    """It neither overwrites the state that the owner saves nor is overwritten by it."""
    told: list[str] = []

    async def books(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
        await model.says("It waits for you.")
        await model.hears()
        await model.says("Go on.")

    async def knows(model: ScriptedModel) -> None:
        await model.hears()
        told.append(str(model.received))
        await model.says("Yes.")

    async def main() -> None:
        async with (
            scripted_provider(books, knows, knows) as served,
            running_host(any_store_folder, served) as here,
            running_host(any_store_folder, served) as there,
            http_client(there) as http,
        ):
            async with here.client("text") as ada:
                await ada.say("text", text="book a table")
                await ada.until_type("turn_complete")
                (card,) = ada.of("confirmation_required")
                named = {SESSION: ada.token}
                decided = await http.post(
                    f"/confirmations/{card['token']}", json={"approve": True}, headers=named
                )
                assert decided.status_code == 200
                await ada.say("text", text="something else")
                await ada.until_type("turn_complete", 2)
            for hosts in ([there], [there, here]):
                async with hosts[-1].client("text", token=ada.token, lastEvent=ada.last_event) as moved:
                    await moved.say("text", text=f"and now, at host {len(hosts)}?")
                    await moved.until(lambda: moved.said("assistant").count("Yes.") == len(hosts))  # noqa: B023
        assert any_store_folder.effects("done a table") == 1
        for known in told:
            assert "something else" in known
            assert known.count("the answer was") == 2  # That the call waits, and its outcome.

    asyncio.run(main())


@pytest.mark.parametrize("again", ["declined again", "resumed"])
def test_a_decline_that_its_host_could_not_publish_is_published_once_by_the_next_host(
    host_folder: HostFolder, again: str
) -> None:
    """The host recorded the decision, and died or lost the session before the event was saved."""

    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served) as host,
            http_client(host) as http,
        ):
            body = {"arguments": {"text": "a table"}}
            asked = (await http.post("/execute/hst_book", json=body)).json()
            named, card = {SESSION: asked["token"]}, asked["confirmation"]
            runtime = host.sessions.runtime
            (pending,) = await runtime.confirmations.for_session(asked["session"])
            assert await runtime.ledger.record_not_run(pending, declined())
            for _ in range(2):
                if again == "declined again":
                    decision = await http.post(
                        f"/confirmations/{card['token']}", json={"approve": False}, headers=named
                    )
                    assert decision.json()["state"] == "declined"
                async with host.client("text", token=asked["token"]) as ada:
                    settled = await ada.until_type("confirmation_settled")
                    await ada.until_type("caught_up")
                    assert (settled["callId"], settled["approved"]) == (asked["callId"], False)
                    assert len(ada.of("confirmation_settled")) == 1

    asyncio.run(main())


def test_a_call_on_another_host_does_not_overwrite_a_newer_session_state(
    host_folder: HostFolder,
) -> None:
    """The call starts in an earlier turn than the one in which it ends."""

    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served) as here,
            running_host(host_folder, served) as there,
            http_client(there) as http,
            here.client("text") as ada,
        ):
            await ada.say("text", text="hello")
            await ada.until_type("turn_complete")
            body = {"arguments": {"text": "it", "before": "go"}}
            note = asyncio.create_task(
                http.post("/execute/hst_note", json=body, headers={SESSION: ada.token})
            )
            await ada.until(lambda: host_folder.effects("begun it"))
            await ada.say("text", text="and now?")
            await ada.until_type("turn_complete", 2)
            host_folder.open_gate("go")
            assert (await note).status_code == 200
            kept = await Session.resume(ada.token.split(".")[0], store_of(there))
            assert kept
            assert kept.turn.user_text == "and now?"

    asyncio.run(main())


def test_a_client_that_resumes_behind_an_unsigned_event_gets_nothing_from_a_host_that_lost_the_session() -> (
    None
):
    async def main() -> None:
        store, session = MemoryStore(), Session("text", "1", session_id="s", secret="known to its client")
        lost, beside = EventLog(session, store), EventLog(session, store, owned=False)
        await claim_ownership(session.id, store, "another host")
        await beside.append([QueuedEvent("confirmation_settled", {"callId": "c", "approved": True})])
        with pytest.raises(OwnershipLost):
            await lost.append([QueuedEvent("session_status", {"state": "idle"})])
        await beside.append([QueuedEvent("tool_complete", {"callId": "c", "data": {}})])

        whole = (await replay(session, store, 0)).messages
        assert types(whole, "session_status", "tool_complete") == ["tool_complete"]
        settled = whole[0]["id"]
        assert (await replay(session, store, settled)).messages == whole[1:]
        async with aclosing(follow(session, store, settled)) as following:
            assert await anext(following) == whole[1]

    asyncio.run(main())


def test_a_session_is_deleted_whichever_host_owned_it(host_folder: HostFolder) -> None:
    """The records of all owners are deleted; until then, the list has the session once."""

    async def main() -> None:
        async with scripted_provider(echo, echo) as served, running_host(host_folder, served) as host:
            async with host.client("text") as ada:
                await ada.say("text", text="hello")
                await ada.until_type("turn_complete")
            async with (
                running_host(host_folder, served) as other,
                other.client("text", token=ada.token) as moved,
            ):
                await moved.say("text", text="again")
                await moved.until(lambda: moved.said("assistant")[1:])
            store = store_of(host)
            session = ada.token.split(".")[0]
            assert [each.id for each in await all_sessions(store)] == [session]
            await delete(store, session)
            assert await all_sessions(store) == []
            assert await Session.resume(session, store) is None
            assert not [key for key in await store.keys("") if session in key]

    asyncio.run(main())
