"""`GET /events`: ids, resumption across reconnects and restarts, resets, heartbeats, and the end."""

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
from asking import NAMED, Told, asking, told, until
from hosting import PATIENCE, HostProcess, Workshop, check, hosted, provided
from jackfield_host.endpoints import streaming
from jackfield_scripted import ScriptedModel
from jackfield_sessions.admission import Identity


async def note(ada: httpx.AsyncClient, text: str, token: str = "") -> dict[str, Any]:
    headers = {NAMED: token} if token else {}
    answer = await ada.post("/execute/hst_note", json={"arguments": {"text": text}}, headers=headers)
    result: dict[str, Any] = answer.json()
    return result


@asynccontextmanager
async def listening(ada: httpx.AsyncClient, token: str, seen: str = "") -> AsyncIterator[AsyncIterator[Told]]:
    headers = {NAMED: token, **({"Last-Event-ID": seen} if seen else {})}
    async with ada.stream("GET", "/events", headers=headers) as response:
        assert response.status_code == 200
        yield told(response)


async def take(events: AsyncIterator[Told], count: int) -> list[Told]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(events) for _ in range(count)]


def test_events_are_told_again_from_where_a_client_was(workshop: Workshop) -> None:
    """Across a reconnect, and across a host that was killed and started again."""

    async def main() -> None:
        async with provided() as served, HostProcess(workshop, served) as host:
            async with asking(host) as ada:
                made = await note(ada, "first")
                token, prefix = made["token"], made["session"][:8]
                async with listening(ada, token) as events:
                    first = await take(events, 2)
                    await note(ada, "second", token)
                    third = (await take(events, 1))[0]
            for each in (*first, third):
                check(each.data, by_host=True)
            assert [each.name for each in first] == ["tool_start", "tool_complete"]
            assert [each.id for each in (*first, third)] == [f"{prefix}-{n}" for n in (1, 2, 3)]
            await host.kill()
            await host.start()
            async with asking(host) as ada, listening(ada, token, third.id) as events:
                fourth = (await take(events, 1))[0]
                assert (fourth.id, fourth.data["data"]["text"]) == (f"{prefix}-4", "second")
                await note(ada, "third", token)
                assert [each.id for each in await take(events, 2)] == [f"{prefix}-5", f"{prefix}-6"]

    asyncio.run(main())


def test_an_id_that_is_none_of_the_sessions_resets_and_leaks_nothing(workshop: Workshop) -> None:
    async def main() -> None:
        async with provided() as served, hosted(workshop, served) as host, asking(host) as ada:
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
                async with listening(ada, mine["token"], seen) as events:
                    reset, *kept = await take(events, 3)
                assert (reset.name, reset.data["reason"], reset.id) == ("reset", "unknown", "")
                check(reset.data, by_host=True)
                assert [each.id for each in kept] == [f"{prefix}-1", f"{prefix}-2"]
                assert "hidden" not in str([each.data for each in kept])

    asyncio.run(main())


def test_events_that_are_no_longer_kept_reset(workshop: Workshop) -> None:
    async def main() -> None:
        async with provided() as served, hosted(workshop, served) as host, asking(host) as ada:
            made = await note(ada, "gone")
            assert host.house
            await host.house.sessions.runtime.store.clear(f"events/{made['session']}")
            await note(ada, "kept", made["token"])
            async with listening(ada, made["token"], f"{made['session'][:8]}-1") as events:
                reset, *kept = await take(events, 3)
            assert (reset.name, reset.data["reason"]) == ("reset", "expired")
            assert [each.data["id"] for each in kept] == [3, 4]

    asyncio.run(main())


def test_a_quiet_stream_beats(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BEAT_SECONDS", 0.05)

    async def main() -> None:
        async with provided() as served, hosted(workshop, served) as host, asking(host) as ada:
            made = await note(ada, "a")
            async with listening(ada, made["token"]) as events:
                # On a slow machine it beats before the first event, too.
                while (await take(events, 1))[0].name != "tool_complete":
                    pass
                assert [each.comment for each in await take(events, 2)] == [True, True]

    asyncio.run(main())


def test_a_user_listens_to_a_few_streams_at_once(workshop: Workshop) -> None:
    async def main() -> None:
        async with (
            provided() as served,
            hosted(workshop, served, sessions_per_user=2) as host,
            asking(host) as ada,
        ):
            token = (await note(ada, "a"))["token"]
            async with listening(ada, token) as one, listening(ada, token) as two:
                await take(one, 1), await take(two, 1)
                refused = await ada.get("/events", headers={NAMED: token})
                assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_streams")
            assert host.house
            sessions = host.house.sessions
            await until(lambda: not sessions.listeners)
            async with listening(ada, token) as one:
                await take(one, 1)

    asyncio.run(main())


def test_a_client_that_takes_nothing_is_let_go(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "SEND_SECONDS", 0.2)

    async def main() -> None:
        async with provided() as served, hosted(workshop, served) as host, asking(host) as ada:
            made = await note(ada, "a")
            assert host.house
            sessions = host.house.sessions
            much = json.dumps(
                {"type": "custom", "name": "much", "fields": {"text": "x" * 200_000}, "at": 1.0}
            )
            with socket.socket() as silent:
                silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                silent.connect(("127.0.0.1", host.port))
                head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n{NAMED}: {made['token']}\r\n\r\n"
                silent.sendall(head.encode())
                await until(lambda: sessions.listeners)
                for _ in range(50):
                    await sessions.runtime.store.append(f"events/{made['session']}", much.encode())
                await until(lambda: not sessions.listeners)

    asyncio.run(main())


def test_a_stream_ends_with_its_users_token(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with provided() as served, hosted(workshop, served) as host, asking(host) as ada:
            made = await note(ada, "a")
            assert host.house
            gate, soon = host.house.gate, Identity("local", expires=time.time() + 2)
            monkeypatch.setattr(gate, "admit", lambda _: soon)
            async with listening(ada, made["token"]) as events:
                names = [(each.name, each.data.get("code")) async for each in events]
            assert names == [("tool_start", None), ("tool_complete", None), ("error", "expired_token")]

    asyncio.run(main())


def test_the_events_of_a_session_that_is_over_are_told_to_their_end(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_host.endpoints.events.LOOK_SECONDS", 0.1)

    async def quiet(_: ScriptedModel) -> None:
        """A model that says nothing."""

    async def main() -> None:
        async with provided(quiet) as served, hosted(workshop, served) as host, asking(host) as http:
            async with host.client("text") as ada:
                await note(http, "a", ada.token)
                async with listening(http, ada.token) as events:
                    await take(events, 1)
                    await ada.say("end")
                    during = [each.name async for each in events]
            async with listening(http, ada.token) as events:
                names = [each.name async for each in events]
            assert [name for name in names if name.startswith("tool")] == ["tool_start", "tool_complete"]
            assert during == names[1:]
            again = await http.post(
                "/execute/hst_note", json={"arguments": {"text": "b"}}, headers={NAMED: ada.token}
            )
            assert (again.status_code, again.json()["error"]["code"]) == (410, "ended")

    asyncio.run(main())


def test_a_stream_ends_when_the_host_is_told_to_stop(workshop: Workshop) -> None:
    async def main() -> None:
        async with provided() as served, HostProcess(workshop, served) as host, asking(host) as ada:
            made = await note(ada, "a")
            async with listening(ada, made["token"]) as events:
                await take(events, 2)
                stopping = asyncio.create_task(host.kill(SIGTERM))
                rest = [each async for each in events]
            assert [each.name for each in rest] == ["going_away"]
            check(rest[0].data, by_host=True)
            assert await stopping == 0
            assert "Traceback" not in host.output.read_text()

    asyncio.run(main())
