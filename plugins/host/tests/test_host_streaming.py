"""Streaming tools on a real host: order, limits, reconnects, crashes, cancellation, deadlines and SSE."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
from host_harness import HostFolder, HostProcess, RunningHost, running_host, scripted_provider, wait_until
from http_client import SESSION, StreamEvent, http_client, stream_events
from jackfield.partial_results import MAX_BYTES, MAX_EVENTS
from jackfield_scripted import ScriptedCall, ScriptedModel

STREAM = {"Accept": "text/event-stream"}
FIRST = "0 1 2 3 4 "
ALL = "0 1 2 3 4 5 6 7 8 9 "


def run(host_folder: HostFolder, test: Callable[[RunningHost, httpx.AsyncClient], Awaitable[None]]) -> None:
    async def main() -> None:
        async with (
            scripted_provider() as served,
            running_host(host_folder, served) as host,
            http_client(host) as ada,
        ):
            await test(host, ada)

    asyncio.run(main())


def asked(
    tool: str, *, key: str = "", headers: Mapping[str, str] | None = None, **args: Any
) -> dict[str, Any]:
    return {
        "method": "POST",
        "url": f"/execute/{tool}",
        "json": {"arguments": {"text": key or tool, **args}},
        "headers": {**STREAM, **({"Idempotency-Key": key} if key else {}), **(headers or {})},
    }


@asynccontextmanager
async def streamed(
    ada: httpx.AsyncClient, tool: str, **options: Any
) -> AsyncIterator[AsyncIterator[StreamEvent]]:
    async with ada.stream(**asked(tool, **options)) as response:
        assert response.status_code == 200, await response.aread()
        yield (each async for each in stream_events(response) if not each.comment)


def text_of(events: Sequence[Mapping[str, Any]]) -> str:
    """Return the partial results as a client shows them; fails if one is missing or doubled."""
    shown = ""
    number = 0
    for each in events:
        if each["type"] == "tool_progress":
            # A further attempt of the call begins again.
            shown, number = ("", 0) if each["partial"] == 1 else (shown, number)
            assert each["partial"] == number + 1
            shown, number = shown + each["data"], number + 1
    return shown


async def until_first_half(events: AsyncIterator[StreamEvent]) -> list[StreamEvent]:
    seen: list[StreamEvent] = []
    async for each in events:
        seen.append(each)
        if text_of([event.data for event in seen]) == FIRST:
            return seen
    raise AssertionError(f"the stream ended: {[each.data for each in seen]}")


def test_execute_streams_the_parts_of_a_call_and_then_its_result(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        async with streamed(ada, "hst_streams", before="go") as events:
            seen = await until_first_half(events)
            host_folder.open_gate("go")
            seen += [each async for each in events]
        assert [each.name for each in seen if each.name != "tool_progress"] == [
            "tool_start",
            "tool_complete",
            "result",
        ]
        assert text_of([each.data for each in seen]) == ALL
        result = seen[-1].data
        assert (result["status"], result["success"]) == (200, True)
        assert result["envelope"]["data"] == {"counted": list(range(10))}
        ids = [int(each.id.rpartition("-")[2]) for each in seen[:-1]]
        assert ids == sorted(set(ids))
        # `GET /events` has the same events.
        logged = []
        async with ada.stream("GET", "/events", headers={SESSION: result["token"]}) as response:
            async for each in stream_events(response):
                logged.append((each.id, each.data))
                if each.name == "tool_complete":
                    break
        assert logged == [(each.id, each.data) for each in seen[:-1]]

    run(host_folder, test)


def test_a_stream_reports_refused_calls_in_its_result(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        async with streamed(ada, "hst_refuse") as events:
            seen = [each async for each in events]
        assert [each.name for each in seen] == ["tool_start", "tool_error", "result"]
        assert (seen[-1].data["status"], seen[-1].data["error"]["code"]) == (422, "permanent")
        refused = await ada.request(**asked("hst_look", headers={"Idempotency-Key": "not valid"}))
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid")
        plain = await ada.post("/execute/hst_streams", json={"arguments": {"text": "x"}})
        assert plain.json()["envelope"]["data"] == {"counted": list(range(10))}

    run(host_folder, test)


def test_a_repeated_request_continues_the_stream_and_runs_nothing_twice(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        key = "a-stream-that-broke"
        async with streamed(ada, "hst_stream_note", key=key, before="go") as events:
            seen = await until_first_half(events)
        # The client is gone; the call is not.
        host_folder.open_gate("go")
        await wait_until(lambda: host_folder.effects(f"closed {key}"))
        resumed = {"Last-Event-ID": seen[-1].id}
        async with streamed(ada, "hst_stream_note", key=key, before="go", headers=resumed) as events:
            rest = [each async for each in events]
        assert text_of([each.data for each in (*seen, *rest)]) == ALL
        assert [each.name for each in rest if each.name != "tool_progress"] == ["tool_complete", "result"]
        assert rest[-1].data["envelope"]["data"] == {"counted": list(range(10))}
        async with streamed(ada, "hst_stream_note", key=key, before="go") as events:
            again = [each async for each in events]
        assert [each.data for each in again[:-1]] == [each.data for each in (*seen, *rest[:-1])]
        assert again[-1].data["envelope"] == rest[-1].data["envelope"]
        assert host_folder.effects(f"begun {key}") == 1

    run(host_folder, test)


def test_parts_are_limited_and_the_answer_is_complete(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        async with streamed(ada, "hst_floods") as events:
            seen = [each.data async for each in events]
        parts = [each for each in seen if each["type"] == "tool_progress"]
        numbers = [item["number"] for each in parts for item in each["data"]]
        assert numbers == list(range(len(numbers)))
        assert 0 < len(numbers) < 3000
        assert len(parts) <= MAX_EVENTS
        assert sum(len(str(each["data"])) for each in parts) <= MAX_BYTES * 1.2
        assert [each.get("truncated", False) for each in parts] == [False] * (len(parts) - 1) + [True]
        assert seen[-1]["envelope"]["data"] == {"sent": 3000}

    run(host_folder, test)


async def counts(model: ScriptedModel) -> None:
    (envelope,) = (await model.calls(ScriptedCall("hst_streams", {"text": "it", "before": "go"}))).values()
    said = str(envelope)
    await model.says("All ten." if envelope["ok"] and "0 1" not in said else f"No: {said}")


async def counts_when_asked(model: ScriptedModel) -> None:
    await model.hears()
    await counts(model)


def test_a_client_that_reconnects_mid_stream_gets_each_part_once(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider(counts_when_asked) as served,
            running_host(host_folder, served) as host,
        ):
            async with host.connected("text") as ada:
                await ada.say("start")
                await ada.until_type("session")
                await ada.say("text", text="Count.")
                await ada.until(lambda: text_of(ada.events) == FIRST or None)
                token, before = ada.token, list(ada.events)
                last = ada.last_event
            host_folder.open_gate("go")
            async with host.connected("text") as ada:
                await ada.say("resume", token=token, lastEvent=last)
                await ada.until(lambda: "All ten." in ada.said("assistant") or None)
                events = [*before, *ada.events]
        numbers = [each["id"] for each in events]
        assert numbers == sorted(set(numbers))
        assert text_of(events) == ALL
        (done,) = [each for each in events if each["type"] == "tool_complete"]
        assert done["data"] == {"counted": list(range(10))}
        kinds = [each["type"] for each in events]
        assert "tool_progress" not in kinds[kinds.index("tool_complete") :]

    asyncio.run(main())


def test_cancelling_a_call_closes_its_generator(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider(counts_when_asked) as served,
            running_host(host_folder, served) as host,
            host.connected("text") as ada,
        ):
            await ada.say("start")
            await ada.until_type("session")
            await ada.say("text", text="Count.")
            await ada.until(lambda: text_of(ada.events) == FIRST or None)
            await ada.say("cancel", callId=ada.of("tool_start")[0]["callId"])
            error = await ada.until_type("tool_error")
            assert error["errorType"] == "TRANSIENT"
            assert (host_folder.effects("closed it"), host_folder.effects("done it")) == (1, 0)
            assert text_of(ada.events) == FIRST
            assert not ada.of("tool_complete")

    asyncio.run(main())


def test_a_deadline_ends_a_stream_without_an_answer(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, ada: httpx.AsyncClient) -> None:
        async with streamed(ada, "hst_stream_brief", before="never") as events:
            seen = [each async for each in events]
        assert text_of([each.data for each in seen]) == FIRST
        assert [each.name for each in seen][-2:] == ["tool_error", "result"]
        result = seen[-1].data
        assert (result["status"], result["success"]) == (408, False)
        assert "data" not in result["envelope"]
        # A read is tried again after a timeout.
        assert [each.data.get("partial") for each in seen].count(1) == 2
        assert host_folder.effects("closed hst_stream_brief") == 2

    run(host_folder, test)


def test_a_host_killed_mid_stream_leaves_the_call_in_doubt(host_folder: HostFolder) -> None:
    async def main() -> None:
        key = "killed-in-the-middle"
        async with scripted_provider() as served, HostProcess(host_folder, served) as host:
            seen: list[StreamEvent] = []
            async with http_client(host) as ada:
                try:
                    async with streamed(ada, "hst_stream_note", key=key, before="never") as events:
                        seen = await until_first_half(events)
                        await host.kill()
                        seen += [each async for each in events]
                except httpx.TransportError:
                    pass
            await host.start()
            async with http_client(host) as ada:
                resumed = {"Last-Event-ID": seen[-1].id}
                async with streamed(
                    ada, "hst_stream_note", key=key, before="never", headers=resumed
                ) as events:
                    rest = [each async for each in events]
        assert text_of([each.data for each in (*seen, *rest)]) == FIRST
        result = rest[-1].data
        assert (result["status"], result["envelope"]["meta"]["state"]) == (500, "in_doubt")
        assert "data" not in result["envelope"]
        assert host_folder.effects(f"begun {key}") == 1

    asyncio.run(main())
