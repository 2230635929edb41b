"""A session survives connections, hosts and crashes: no event lost or duplicated, no effect twice."""

from __future__ import annotations

import asyncio
import json

import pytest
from host_harness import Client, HostFolder, HostProcess, running_host, scripted_provider
from http_client import SESSION, http_client
from jackfield_scripted import ScriptedCall, ScriptedModel
from session_views import echo, notes_behind_a_gate, numbered, saw_everything, seen_events, types


def test_a_connection_lost_during_an_answer_resumes_where_it_was(host_folder: HostFolder) -> None:
    async def slow(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("word " * 600, pieces=600)

    async def main() -> None:
        async with (
            scripted_provider(slow, split=500, delay=0.02) as served,
            running_host(host_folder, served) as host,
        ):
            async with host.client("text") as ada:
                await ada.say("text", text="go on")
                await ada.until_type("text_delta", 2)
                ada.raw.transport.abort()
                await ada.until_closed()
            async with host.client("text", token=ada.token, lastEvent=ada.last_event) as back:
                assert back.session
                assert back.session["resumed"]
                await back.until_type("turn_complete")
                # The deltas before and after the break make up the answer.
                partial = back.session["partial"]
                assert partial
                written = partial["text"]
                for piece in back.of("text_delta"):
                    assert piece["answer"] == partial["answer"]
                    written = written[: piece["offset"]] + piece["text"]
                answer = back.said("assistant")[0]
                assert written.strip() == answer
                assert await saw_everything(host, ada, back)

    asyncio.run(main())


def test_a_second_connection_replaces_the_first(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served) as host,
            host.client("text") as first,
        ):
            async with host.client("text", token=first.token, lastEvent=first.last_event) as second:
                assert await first.until_closed() == (4006, "another connection took over the session")
                await second.say("text", text="here")
                await second.until_type("turn_complete")
                assert second.said("assistant") == ["You said here"]
            assert "here" not in str(first.got)

    asyncio.run(main())


def test_old_unknown_and_foreign_positions_are_handled(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with scripted_provider(echo) as served, running_host(host_folder, served) as host:
            async with host.client("text") as ada, host.client("text") as bob:
                for client, words, turn in ((ada, "my secret", 1), (bob, "hello", 1), (bob, "again", 2)):
                    await client.say("text", text=words)
                    await client.until_type("turn_complete", turn)
            async with host.client("text", token=ada.token, lastEvent=bob.last_event + 99) as back:
                assert (await back.until_type("reset"))["reason"] == "unknown"
                assert not back.events
            async with host.client("text", token=bob.token, lastEvent=1) as back:
                await back.until(lambda: back.last_event == bob.last_event)
                assert not back.of("reset")
                assert [event["id"] for event in back.events] == list(range(2, bob.last_event + 1))
                assert "my secret" not in str(back.got)
            for token in (ada.token.split(".")[0] + "." + bob.token.split(".")[1], "x", "." * 9, "a" * 200):
                async with host.connected("text") as thief:
                    await thief.say("resume", token=token)
                    assert (await thief.until_closed())[0] == 4007
                    # The terminal says how to start a new session, so the host does not repeat it.
                    assert thief.of("error")[0].get("suggestion") is None
                    assert not thief.events

    asyncio.run(main())


def test_a_session_resumes_only_at_the_endpoint_of_its_mode_and_a_wrong_attempt_changes_nothing(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served) as host,
            running_host(host_folder, served) as other,
            host.client("text") as ada,
        ):
            for there in (host, other):
                async with there.connected("voice") as wrong:
                    await wrong.say("resume", token=ada.token)
                    assert (await wrong.until_closed())[0] == 4004
                    assert "/ws/text" in wrong.of("error")[0]["message"]
            await ada.say("text", text="still here")
            await ada.until_type("turn_complete")
            assert not ada.closed

    asyncio.run(main())


MOMENTS = {
    # when the host dies: the gate of the tool, what was done by then, what the client and the model get
    "before the call": ({}, 0, "tool_complete"),
    "before the effect": ({"before": "go"}, 0, "tool_error"),
    "after the effect": ({"after": "go"}, 1, "tool_error"),
    "after the answer": ({}, 1, "tool_complete"),
}


async def reached(moment: str, client: Client, host_folder: HostFolder) -> None:
    """Wait for the moment at which the host is killed."""
    if moment == "before the effect":
        await client.until(lambda: host_folder.effects("begun it"))
    elif moment == "after the effect":
        await client.until(lambda: host_folder.effects("done it"))
    elif moment == "after the answer":
        await client.until_type("tool_complete")
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_write_around_a_host_crash_runs_once_and_a_doubt_is_reported(
    any_store_folder: HostFolder, moment: str
) -> None:
    gates, done, outcome = MOMENTS[moment]
    told: list[str] = []
    arrived, killed = asyncio.Event(), asyncio.Event()

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        if not killed.is_set():
            arrived.set()
            if moment != "before the call":
                await model.calls(ScriptedCall("hst_note", {"text": "it", **gates}, id="call_note_0001"))
                await asyncio.Event().wait()
            await killed.wait()
            # The scripted provider takes two identical requests for the same conversation.
            await model.hears()
        told.append(str(model.received))
        if moment == "before the call":
            await model.calls(ScriptedCall("hst_note", {"text": "it"}, id="call_note_0001"))
        await model.says("That is what happened.")

    async def main() -> None:
        async with scripted_provider(script) as served, HostProcess(any_store_folder, served) as host:
            async with host.client("text") as ada:
                await ada.say("text", text="note it")
                await ada.until(arrived.is_set)
                await reached(moment, ada, any_store_folder)
                await ada.until_type("message")
                await host.kill()
                killed.set()
                await ada.until_closed()
            assert any_store_folder.effects("done it") == done
            any_store_folder.open_gate("go")
            await host.start()
            async with host.client("text", token=ada.token, lastEvent=ada.last_event) as back:
                await back.until(lambda: back.said("assistant"))
                seen = seen_events(ada, back)
                assert types(seen, "tool_complete", "tool_error") == [outcome]
                assert await saw_everything(host, ada, back)
                if outcome == "tool_error":
                    (error,) = [each for each in seen if each["type"] == "tool_error"]
                    assert "may or may not have taken effect" in error["message"]
                    assert "may or may not have taken effect" in told[0]
                elif moment == "after the answer":
                    assert "hst_note" in told[0]
            assert any_store_folder.effects("begun it") == 1
            assert any_store_folder.effects("done it") == (done if outcome == "tool_error" else 1)

    asyncio.run(main())


def test_after_a_host_crash_a_pending_read_runs_again_and_a_confirmation_survives(
    host_folder: HostFolder,
) -> None:
    told: list[str] = []

    async def first(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
        await model.says("It waits for you.")
        await model.hears()
        await model.calls(ScriptedCall("hst_look", {"text": "it", "before": "go"}, id="call_look_0001"))

    async def main() -> None:
        async with (
            scripted_provider(first, numbered(told)) as served,
            HostProcess(host_folder, served) as host,
        ):
            async with host.client("text") as ada:
                await ada.say("text", text="book a table")
                await ada.until_type("turn_complete")
                (asked,) = ada.of("confirmation_required")
                assert asked["preview"] == "Book a table?"
                await ada.say("text", text="look meanwhile")
                await ada.until(lambda: host_folder.effects("begun it"))
                await host.kill()
            host_folder.open_gate("go")
            await host.start()
            async with host.client("text", token=ada.token) as back:
                await back.until(lambda: back.said("assistant")[1:])
                assert types(back.events, "tool_complete") == ["tool_complete"]
                (again,) = back.of("confirmation_required")
                assert again == asked
                for _ in range(2):
                    await back.say("approve", token=again["token"])
                (settled,) = [await back.until_type("confirmation_settled")]
                assert settled["approved"]
                await back.until(lambda: back.said("assistant")[2:])
            assert host_folder.effects("done a table") == 1
            store = b"".join(path.read_bytes() for path in host_folder.path.glob("jackfield.db*"))
            assert asked["token"].encode() not in store
            assert ada.token.split(".")[1].encode() not in store

    asyncio.run(main())
    assert '"words":1' in told[0].replace("\\", "")
    assert "approved" in told[-1]


def test_another_host_takes_over_during_a_call_and_the_first_releases_the_session(
    any_store_folder: HostFolder,
) -> None:
    """The write completes on the first host, and its result reaches the user on the second."""
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
            # No event is in transit to the first connection when the second one sends its last event id.
            await ada.until(lambda: ada.of("tool_start") and ada.states[-1:] == ["executing_tool"])
            async with there.client("text", token=ada.token, lastEvent=ada.last_event) as moved:
                seen_here = list(ada.events)
                any_store_folder.open_gate("go")
                await moved.until_type("turn_complete")
                assert (await ada.until_closed())[0] == 4006
                assert list(ada.events) == seen_here
                seen = seen_events(ada, moved)
                assert types(seen, "tool_complete", "tool_error") == ["tool_complete"]
                assert await saw_everything(there, ada, moved)
                assert any_store_folder.effects("done it") == 1
                await moved.until(lambda: not here.sessions.live)
            # Back to the first host, whose copy of the session is outdated.
            async with here.client("text", token=ada.token, lastEvent=moved.last_event) as home:
                await home.say("text", text="and now?")
                await home.until(lambda: home.said("assistant"))
                assert "Answer 1." in told[-1]
                assert await saw_everything(here, ada, moved, home)

    asyncio.run(main())
    assert "hst_note" in told[0]


def test_a_user_continues_a_conversation_on_another_host_without_its_token(host_folder: HostFolder) -> None:
    async def books(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
        await model.says("It waits for you.")

    async def main() -> None:
        async with (
            scripted_provider(books, echo) as served,
            running_host(host_folder, served) as here,
            running_host(host_folder, served) as there,
            http_client(here) as near,
            http_client(there) as far,
            here.client("text") as ada,
        ):
            await ada.say("text", text="book a table")
            await ada.until_type("turn_complete")
            path = f"/sessions/{ada.token.partition('.')[0]}/token"
            # Where the session is live, the token stays the same.
            assert (await near.post(path)).json()["token"] == ada.token
            issued = (await far.post(path)).json()
            assert issued["mode"] == "text"
            async with there.client("text", token=issued["token"]) as moved:
                asked = await moved.until_type("confirmation_required")
                await moved.say("approve", token=asked["token"])
                await moved.until_type("tool_complete")
                assert host_folder.effects("done a table") == 1
                old = await far.get("/events", headers={SESSION: ada.token})
                assert (old.status_code, old.json()["error"]["code"]) == (404, "unknown_session")
            # The first host did not notice yet that it no longer has the session.
            async with here.client("text", token=issued["token"]) as home:
                assert (await ada.until_closed())[0] == 4006
                await home.say("end")
                await home.until_closed()
            assert (await far.post(path)).status_code == 410

    asyncio.run(main())


def test_a_session_of_another_format_version_is_refused_with_a_message(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with scripted_provider(echo) as served:
            async with running_host(host_folder, served) as host, host.client("text") as ada:
                token, session_id = ada.token, ada.token.partition(".")[0]
            async with running_host(host_folder, served) as host:
                store = host.sessions.runtime.store
                saved = json.loads(await store.get(f"session/{session_id}") or b"")
                del saved["format"]
                await store.put(f"session/{session_id}", json.dumps(saved).encode())
                async with host.connected("text") as back:
                    await back.say("resume", token=token)
                    assert (await back.until_closed())[0] == 4007
                    assert "saved by a different version of Jackfield" in back.of("error")[0]["message"]

    asyncio.run(main())


def test_a_host_that_lost_a_session_unknowingly_publishes_nothing_stale(
    host_folder: HostFolder,
) -> None:
    """The user returns to a host with an outdated copy of the session."""
    heard: list[str] = []

    async def script(model: ScriptedModel) -> None:
        while True:
            heard.append((await model.hears()).text + str(model.received))
            await model.says("Yes.")

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as here,
            running_host(host_folder, served) as there,
        ):
            async with here.client("text") as ada:
                await ada.say("text", text="first")
                await ada.until_type("turn_complete")
            async with there.client("text", token=ada.token, lastEvent=ada.last_event) as moved:
                await moved.say("text", text="second")
                await moved.until_type("turn_complete")
            async with here.client("text", token=ada.token, lastEvent=moved.last_event) as home:
                await home.say("text", text="third")
                await home.until_type("turn_complete")
                assert "second" in heard[-1]
                assert await saw_everything(here, ada, moved, home)

    asyncio.run(main())
