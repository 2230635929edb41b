"""Tools over MCP: their declarations, their results, and errors."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_harness import ERAS, TOOLS, McpFolder, keyed, running_host, text_of
from mcp_types import (
    INVALID_PARAMS,
    LOG_LEVEL_META_KEY,
    LoggingLevel,
    LoggingMessageNotificationParams,
)

each_era = pytest.mark.parametrize("era", ERAS)


@each_era
def test_a_client_lists_and_calls_tools(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert "mct_spoken" not in tools
            look = tools["mct_look"]
            assert look.title == "Mct look"
            assert look.description == "Does what mct_look does."
            assert look.input_schema["required"] == ["text"]
            assert look.output_schema is not None
            assert look.output_schema["properties"]["words"] == {"type": "integer"}
            result = await client.call_tool("mct_look", {"text": "two words"})
            assert not result.is_error
            assert result.structured_content == {"words": 2, "text": "two words"}
            assert json.loads(text_of(result, 0)) == result.structured_content

    asyncio.run(run())


@each_era
def test_annotations_say_what_a_tool_does(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            tools = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
            hints = {
                name: (each.read_only_hint, each.destructive_hint, each.idempotent_hint, each.open_world_hint)
                for name, each in tools.items()
                if each is not None
            }
            assert hints["mct_look"] == (True, False, True, True)
            assert hints["mct_facts"] == (True, False, True, False)
            assert hints["mct_book"] == (False, True, False, True)

    asyncio.run(run())


@each_era
def test_a_list_of_tools_has_pages(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder, {"page_size": 4}) as host, host.client(era) as client:
            names: list[str] = []
            cursor = None
            pages = 0
            while pages == 0 or cursor is not None:
                page = await client.list_tools(cursor=cursor)
                assert len(page.tools) <= 4
                names += [tool.name for tool in page.tools]
                cursor, pages = page.next_cursor, pages + 1
            assert pages == 4
            assert names == sorted(set(names))
            assert len(names) == len(TOOLS) - 1
            with pytest.raises(MCPError) as caught:
                await client.list_tools(cursor="!?")
            assert caught.value.code == INVALID_PARAMS

    asyncio.run(run())


@each_era
def test_a_suspended_tool_is_not_listed(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            assert host.host is not None
            registry = host.host.sessions.runtime.registry

            async def missing() -> set[str]:
                listed = {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}
                return {"mct_look", "mct_note"} - listed

            assert await missing() == set()
            registry.suspend("mct_look", "has changed")
            assert await missing() == {"mct_look"}
            # As many tools as before, but others.
            registry.suspend("mct_note", "has changed")
            registry.resume("mct_look")
            assert await missing() == {"mct_note"}

    asyncio.run(run())


@each_era
def test_failures_are_results_with_the_envelope(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            for tool, arguments, kind in (
                ("mct_look", {"text": 5}, "VALIDATION"),
                ("mct_look", {}, "VALIDATION"),
                ("mct_look", {"text": "x", "more": 1}, "VALIDATION"),
                ("mct_refuses", {"text": "x"}, "CONFLICT"),
                ("mct_breaks", {"text": "x"}, "INTERNAL"),
                ("mct_spoken", {"text": "x"}, "MODE_RESTRICTED"),
            ):
                result = await client.call_tool(tool, arguments)
                assert result.is_error
                envelope = json.loads(text_of(result, 0))
                assert envelope["ok"] is False
                assert envelope["error"]["type"] == kind
                # Structured content of a tool with an output schema has to match it.
                assert result.structured_content in (None, envelope)
                assert str(folder.path) not in str(result)

    asyncio.run(run())


@each_era
def test_an_unknown_tool_is_an_error_of_the_protocol(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            with pytest.raises(MCPError) as caught:
                await client.call_tool("mct_lok", {"text": "x"})
            assert caught.value.code == INVALID_PARAMS
            assert "mct_look" in caught.value.message

    asyncio.run(run())


@each_era
def test_data_that_is_not_an_object_is_wrapped_and_null_is_kept(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            schema = tools["mct_several"].output_schema
            assert schema is not None
            assert schema["required"] == ["result"]
            result = await client.call_tool("mct_several", {"text": "one two"})
            assert result.structured_content == {"result": ["one", "two"]}
            assert json.loads(text_of(result, 0)) == ["one", "two"]
            nothing = await client.call_tool("mct_nothing", {"text": "x"})
            assert nothing.structured_content == {"nothing": None, "deep": {"nothing": None}}

    asyncio.run(run())


@each_era
def test_data_that_violates_the_output_schema_is_an_error(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            await client.list_tools()
            result = await client.call_tool("mct_wrong", {"text": "x"})
            assert result.is_error
            assert result.structured_content is None
            error = json.loads(text_of(result, 0))["error"]
            assert error["details"] == {"data": {"words": "many"}}
            # The tool only reads.
            assert error["partialSideEffects"] is False

    asyncio.run(run())


@each_era
def test_limits_apply_to_the_user(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            assert not (await client.call_tool("mct_rationed", {"text": "x"})).is_error
            again = await client.call_tool("mct_rationed", {"text": "y"})
            assert again.structured_content is not None
            assert again.structured_content["error"]["type"] == "RATE_LIMIT"

    asyncio.run(run())


@each_era
def test_progress_reaches_the_client(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            told: list[tuple[float, float | None, str | None]] = []

            async def listen(progress: float, total: float | None, message: str | None) -> None:
                told.append((progress, total, message))

            result = await client.call_tool("mct_tells", {"text": "x"}, progress_callback=listen)
            assert result.structured_content == {"told": True}
            assert [message for _, _, message in told] == ["Half way.", "Nearly.", "There."]
            assert told[0][:2] == (0.5, 1.0)
            amounts = [amount for amount, _, _ in told]
            assert amounts == sorted(set(amounts))

    asyncio.run(run())


@each_era
def test_partial_results_are_progress_and_not_the_result(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            told: list[tuple[float, float | None, str | None]] = []

            async def listen(progress: float, total: float | None, message: str | None) -> None:
                told.append((progress, total, message))
                # The tool waits for this, so the first part arrives while it runs.
                (folder.path / "halfway").touch()

            arguments = {"text": "é", "before": "halfway"}
            result = await client.call_tool("mct_streams", arguments, progress_callback=listen)
            assert result.structured_content == {"streamed": True}
            assert [message for _, _, message in told] == ["Half of it, ", '[{"rest":"é"}]']
            assert told[0][:2] == (0.5, 1.0)

    asyncio.run(run())


@each_era
def test_a_cancelled_read_stops_and_a_cancelled_write_finishes(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            for tool in ("mct_look", "mct_note"):
                arguments = {"text": tool, "before": "gate"}
                meta = keyed(f"cancelled-{tool}")
                call = asyncio.create_task(client.call_tool(tool, arguments, meta=meta))
                await folder.until(f"begun {tool}")
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
            await folder.until("stopped mct_look")
            folder.open_gate("gate")
            await folder.until("done mct_note")
            kept = await client.call_tool(
                "mct_note",
                {"text": "mct_note", "before": "gate"},
                meta=keyed("cancelled-mct_note"),
            )
            assert kept.structured_content == {"words": 1, "text": "mct_note"}
            assert folder.effects("done mct_note") == 1
            assert folder.effects("done mct_look") == 0

    asyncio.run(run())


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@each_era
def test_log_messages_are_sent_to_clients_that_ask_for_them(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        messages: list[LoggingMessageNotificationParams] = []

        async def log(params: LoggingMessageNotificationParams) -> None:
            messages.append(params)

        async def call(client: Client, level: LoggingLevel | None) -> None:
            meta: Any = None
            if level is not None and era == "legacy":
                await client.set_logging_level(level)
            elif level is not None:
                meta = {LOG_LEVEL_META_KEY: level}
            messages.clear()
            await client.call_tool("mct_tells", {"text": "x"}, meta=meta)

        async with running_host(folder) as host, host.client(era, logging_callback=log) as client:
            await call(client, None)
            assert messages == []
            await call(client, "info")
            assert {each.level for each in messages} == {"info"}
            assert [each.data["message"] for each in messages] == ["Half way.", "Nearly.", "There."]
            await call(client, "debug")
            assert {each.level for each in messages} == {"debug", "info"}
            await call(client, "warning")
            assert messages == []

    asyncio.run(run())


@each_era
def test_200_clients_call_at_the_same_time(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.http() as http:

            async def use(number: int) -> str:
                async with host.client(era, http=http) as client:
                    result = await client.call_tool("mct_look", {"text": f"client {number}"})
                    assert result.structured_content is not None
                    return str(result.structured_content["text"])

            texts = await asyncio.gather(*(use(number) for number in range(200)))
            assert texts == [f"client {number}" for number in range(200)]

    asyncio.run(run())
