"""`GET /events`: event ids, replay across reconnects and restarts, resets, heartbeats, and the end."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from signal import SIGTERM
from typing import Any

import httpx
import pytest
from host_harness import PATIENCE, HostFolder, HostProcess, check, running_host, scripted_provider, wait_until
from http_client import SESSION, StreamEvent, http_client, stream_events
from jackfield.protocol.codec import message_type
from jackfield.protocol.messages import SESSION_EVENTS, FormClosed, FormRequest
from jackfield_host.endpoints import events as events_module
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_sessions.admission import Identity


async def note(ada: httpx.AsyncClient, text: str, token: str = "") -> dict[str, Any]:
    headers = {SESSION: token} if token else {}
    answer = await ada.post("/execute/hst_note", json={"arguments": {"text": text}}, headers=headers)
    result: dict[str, Any] = answer.json()
    return result


@asynccontextmanager
async def event_stream(
    ada: httpx.AsyncClient, token: str, seen: str = ""
) -> AsyncIterator[AsyncIterator[StreamEvent]]:
    headers = {SESSION: token, **({"Last-Event-ID": seen} if seen else {})}
    async with ada.stream("GET", "/events", headers=headers) as response:
        assert response.status_code == 200
        yield stream_events(response)


async def take(events: AsyncIterator[StreamEvent], count: int) -> list[StreamEvent]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(events) for _ in range(count)]


def test_events_are_replayed_from_the_last_event_id(host_folder: HostFolder) -> None:
    """This includes a reconnect, and a host that was killed and started again."""

    async def main() -> None:
        async with scripted_provider() as served, HostProcess(host_folder, served) as host:
            async with http_client(host) as ada:
                made = await note(ada, "first")
                token, prefix = made["token"], made["session"][:8]
                async with event_stream(ada, token) as events:
                    first = await take(events, 2)
                    await note(ada, "second", token)
                    third = (await take(events, 1))[0]
            for each in (*first, third):
                check(each.data, by_host=True)
            assert [each.name for each in first] == ["tool_start", "tool_complete"]
            assert [each.id for each in (*first, third)] == [f"{prefix}-{n}" for n in (1, 2, 3)]
            await host.kill()
            await host.start()
            async with http_client(host) as ada, event_stream(ada, token, third.id) as events:
                fourth = (await take(events, 1))[0]
                assert (fourth.id, fourth.data["data"]["text"]) == (f"{prefix}-4", "second")
                await note(ada, "third", token)
                assert [each.id for each in await take(events, 2)] == [f"{prefix}-5", f"{prefix}-6"]

    asyncio.run(main())


def test_an_event_id_of_another_session_resets_and_leaks_nothing(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider() as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            mine, other = await note(ada, "mine"), await note(ada, "hidden")
            for _ in range(3):
                await note(ada, "hidden", other["token"])
            prefix = mine["session"][:8]
            for seen in (
                f"{other['session'][:8]}-1",
                f"{prefix}-999",
                f"{prefix}-x",
                "7",
                f"{prefix}-" + "9" * 40,
            ):
                async with event_stream(ada, mine["token"], seen) as events:
                    reset, *kept = await take(events, 3)
                assert (reset.name, reset.data["reason"], reset.id) == ("reset", "unknown", "")
                check(reset.data, by_host=True)
                assert [each.id for each in kept] == [f"{prefix}-1", f"{prefix}-2"]
                assert "hidden" not in str([each.data for each in kept])

    asyncio.run(main())


def test_expired_events_cause_a_reset(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider() as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            made = await note(ada, "gone")
            await host.sessions.runtime.store.clear(f"events/{made['session']}")
            await note(ada, "kept", made["token"])
            async with event_stream(ada, made["token"], f"{made['session'][:8]}-1") as events:
                reset, *kept = await take(events, 3)
            assert (reset.name, reset.data["reason"]) == ("reset", "expired")
            assert [each.data["id"] for each in kept] == [3, 4]

    asyncio.run(main())


def test_a_stream_without_events_sends_heartbeats(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "HEARTBEAT_SECONDS", 0.05)

    async def main() -> None:
        async with (
            scripted_provider() as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            made = await note(ada, "a")
            async with event_stream(ada, made["token"]) as events:
                # On a slow machine a heartbeat may come before the first event.
                while (await take(events, 1))[0].name != "tool_complete":
                    pass
                assert [each.comment for each in await take(events, 2)] == [True, True]

    asyncio.run(main())


def test_the_streams_of_a_user_are_limited(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider() as served,
            running_host(host_folder, served, sessions_per_user=2) as host,
            http_client(host) as ada,
        ):
            token = (await note(ada, "a"))["token"]
            async with event_stream(ada, token) as one, event_stream(ada, token) as two:
                await take(one, 1), await take(two, 1)
                refused = await ada.get("/events", headers={SESSION: token})
                assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_streams")
            sessions = host.sessions
            await wait_until(lambda: not len(sessions.streams))
            async with event_stream(ada, token) as one:
                await take(one, 1)

    asyncio.run(main())


def test_a_client_that_does_not_read_its_stream_is_disconnected(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "SEND_SECONDS", 0.2)

    async def main() -> None:
        async with (
            scripted_provider() as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            made = await note(ada, "a")
            sessions = host.sessions
            much = json.dumps(
                {"type": "custom", "name": "much", "fields": {"text": "x" * 200_000}, "at": 1.0}
            )
            with socket.socket() as silent:
                silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                silent.connect(("127.0.0.1", host.port))
                head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n{SESSION}: {made['token']}\r\n\r\n"
                silent.sendall(head.encode())
                await wait_until(lambda: len(sessions.streams))
                for _ in range(50):
                    await sessions.runtime.store.append(f"events/{made['session']}", much.encode())
                await wait_until(lambda: not len(sessions.streams))

    asyncio.run(main())


def test_a_stream_ends_when_the_users_token_expires(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with (
            scripted_provider() as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            made = await note(ada, "a")
            gate, soon = host.host.authenticator, Identity("local", expires=time.time() + 2)
            monkeypatch.setattr(gate, "authenticate", lambda _: soon)
            async with event_stream(ada, made["token"]) as events:
                names = [(each.name, each.data.get("code")) async for each in events]
            assert names == [("tool_start", None), ("tool_complete", None), ("error", "expired_token")]

    asyncio.run(main())


def test_all_events_of_an_ended_session_are_replayed(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_host.endpoints.events.CHECK_SECONDS", 0.1)

    async def quiet(_: ScriptedModel) -> None:
        """A model that never answers."""

    async def main() -> None:
        async with (
            scripted_provider(quiet) as served,
            running_host(host_folder, served) as host,
            http_client(host) as http,
        ):
            async with host.client("text") as ada:
                await note(http, "a", ada.token)
                async with event_stream(http, ada.token) as events:
                    await take(events, 1)
                    await ada.say("end")
                    during = [each.name async for each in events]
            async with event_stream(http, ada.token) as events:
                names = [each.name async for each in events]
            assert [name for name in names if name.startswith("tool")] == ["tool_start", "tool_complete"]
            assert during == names[1:]
            again = await http.post(
                "/execute/hst_note", json={"arguments": {"text": "b"}}, headers={SESSION: ada.token}
            )
            assert (again.status_code, again.json()["error"]["code"]) == (410, "ended")

    asyncio.run(main())


def test_a_stream_ends_when_the_host_drains(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider() as served,
            HostProcess(host_folder, served) as host,
            http_client(host) as ada,
        ):
            made = await note(ada, "a")
            async with event_stream(ada, made["token"]) as events:
                await take(events, 2)
                stopping = asyncio.create_task(host.kill(SIGTERM))
                rest = [each async for each in events]
            assert [each.name for each in rest] == ["going_away"]
            check(rest[0].data, by_host=True)
            assert await stopping == 0
            assert "Traceback" not in host.output.read_text()

    asyncio.run(main())


async def eventful(model: ScriptedModel) -> None:
    """A turn with every kind of event."""
    await model.hears()
    await model.calls(ScriptedCall("hst_odd", {"text": "tell"}))
    await model.calls(ScriptedCall("hst_refuse", {"text": "no"}))
    await model.calls(ScriptedCall("hst_look", {"text": "slow", "seconds": 0.3}))
    await model.calls(ScriptedCall("hst_book", {"text": "a table"}))
    await model.says("It waits for you.")
    await model.hears()
    await model.says("Then not." if "declined" in str(model.received) else "It is booked.")


def test_every_kind_of_event_is_streamed_with_an_id_and_as_published(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider(eventful) as served,
            running_host(host_folder, served, dead_air_seconds=0.05) as host,
            http_client(host) as http,
            host.client("text") as ada,
            http.stream("GET", "/events", headers={SESSION: ada.token}) as response,
        ):
            await ada.say("text", text="go on")
            await ada.until_type("turn_complete")
            (asked,) = ada.of("confirmation_required")
            await ada.say("decline", token=asked["token"])
            await ada.until(lambda: "Then not." in ada.said("assistant"))
            await ada.say("end")
            await ada.until_closed()
            events = [each async for each in stream_events(response) if not each.comment]
        for each in events:
            check(each.data, by_host=True)
            assert each.id == f"{ada.token[:8]}-{each.data['id']}"
        # This provider does not use forms.
        kinds = set(SESSION_EVENTS) - {FormRequest, FormClosed}
        assert {each.name for each in events} == set(map(message_type, kinds))
        (settled,) = [each.data for each in events if each.name == "confirmation_settled"]
        assert not settled["approved"]

    asyncio.run(main())
    assert host_folder.effects("done a table") == 0
