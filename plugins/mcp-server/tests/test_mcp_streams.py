"""Streams, on which clients hear that the tools have changed; and the server over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from jackfield_testkit.command_server import start_command
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_harness import ACCEPT, ERAS, INITIALIZE, HostProcess, McpFolder, keyed, make_site, running_host
from mcp_types import (
    INVALID_PARAMS,
    ElicitResult,
    LoggingMessageNotificationParams,
    ToolListChangedNotification,
)

each_era = pytest.mark.parametrize("era", ERAS)


@each_era
def test_clients_hear_that_a_development_host_has_new_tools(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = McpFolder(tmp_path, make_site(tmp_path / "site"))

    async def run() -> None:
        changed = asyncio.Event()

        async def listen(message: Any) -> None:
            if isinstance(message, ToolListChangedNotification):
                changed.set()

        async with (
            HostProcess(folder, command="dev") as host,
            host.client(era, message_handler=listen) as client,
        ):
            first = {tool.name: tool.description for tool in (await client.list_tools()).tools}
            assert first["mct_look"] == "Does what mct_look does."
            async with AsyncExitStack() as stack:
                if era != "legacy":
                    events = await stack.enter_async_context(client.listen(tools_list_changed=True))
                await save(folder)
                descriptions: set[str | None] = set()
                async with asyncio.timeout(60):
                    # The host builds once more when it has started, which is a change too.
                    while "A new text." not in descriptions:
                        await (changed.wait() if era == "legacy" else anext(aiter(events)))
                        changed.clear()
                        now = await client.list_tools(cache_mode="refresh")
                        descriptions = {tool.description for tool in now.tools}

    asyncio.run(run())


async def save(folder: McpFolder) -> None:
    """Save a tool as a developer does."""
    file = folder.site / "mct_mct_look" / "schema.json"
    schema = json.loads(file.read_text())
    file.write_text(json.dumps({**schema, "description": "A new text."}))


def test_a_stream_ends_with_its_host(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder, {"max_streams": 1}) as host, host.http() as http:
            started = await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)
            headers = {"Accept": "text/event-stream", "Mcp-Session-Id": started.headers["mcp-session-id"]}
            async with http.stream("GET", "/mcp", headers=headers) as stream:
                assert stream.headers["content-type"] == "text/event-stream"
                refused = await http.get("/mcp", headers=headers)
                assert refused.status_code == 503
                assert host.host is not None
                host.host.sessions.stopping.set()
                async with asyncio.timeout(10):
                    assert (await stream.aread()).startswith(b": ping")

    asyncio.run(run())


def stdio(folder: McpFolder, *arguments: str, **endpoint: Any) -> StdioServerParameters:
    """Return the command of a server over stdio."""
    config = str(folder.config(0, endpoint))
    command = ["-m", "jackfield_cli", "mcp", "--config", config, *arguments]
    return StdioServerParameters(command=sys.executable, args=command, env=folder.environ, cwd=folder.path)


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
def test_a_client_with_a_handshake_gets_log_messages_over_stdio(folder: McpFolder) -> None:
    async def run() -> None:
        messages: list[Any] = []

        async def log(params: LoggingMessageNotificationParams) -> None:
            messages.append(params.data["message"])

        async with Client(stdio(folder), mode="legacy", logging_callback=log) as client:
            await client.set_logging_level("info")
            await client.call_tool("mct_tells", {"text": "x"})
            assert messages == ["Half way.", "Nearly.", "There."]

    asyncio.run(run())


@each_era
def test_a_client_uses_the_tools_over_stdio(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async def approve(context: Any, params: Any) -> ElicitResult:
            return ElicitResult(action="accept", content={"approve": True})

        server = stdio(folder, "--user", "ada", trust_clients=True)
        async with Client(server, mode=era, elicitation_callback=approve) as client:
            assert "mct_look" in {tool.name for tool in (await client.list_tools()).tools}
            facts = await client.call_tool("mct_facts", {"text": "x"})
            assert facts.structured_content is not None
            assert facts.structured_content["user"] == "ada"
            told: list[str | None] = []

            async def listen(progress: float, total: float | None, message: str | None) -> None:
                told.append(message)

            await client.call_tool("mct_tells", {"text": "x"}, progress_callback=listen)
            assert told == ["Half way.", "Nearly.", "There."]
            booked = await client.call_tool("mct_book", {"text": "a table"}, meta=keyed("b"))
            assert booked.structured_content == {"words": 2, "text": "a table"}
            bad = await client.call_tool("mct_look", {"text": 5})
            assert bad.is_error
            broken = await client.call_tool("mct_breaks", {"text": "x"})
            assert str(folder.path) not in str(broken)
            with pytest.raises(MCPError) as caught:
                await client.call_tool("unknown", {})
            assert caught.value.code == INVALID_PARAMS
            reading = asyncio.create_task(client.call_tool("mct_look", {"text": "read", "before": "never"}))
            await folder.until("begun read")
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await folder.until("stopped read")
        # The next process finds the same session, and so the same call.
        async with Client(server, mode=era) as client:
            again = await client.call_tool("mct_book", {"text": "a table"}, meta=keyed("b"))
            assert again.meta == booked.meta
        assert folder.effects("done a table") == 1

    asyncio.run(run())


def test_a_stdio_server_without_a_registry_says_what_to_do(folder: McpFolder) -> None:
    async def run() -> None:
        config = folder.config(0, {})
        config.write_text(config.read_text().replace("tool_registry.json", "missing.json"))
        process = await start_command(
            ["mcp", "--config", str(config)],
            env=folder.environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, errors = await process.communicate()
        assert process.returncode == 1
        assert output == b""
        assert b"jackfield build" in errors
        assert b"Traceback" not in errors

    asyncio.run(run())


def test_a_client_can_start_the_server_in_any_folder(folder: McpFolder, tmp_path: Path) -> None:
    text = folder.config(0, {}).read_text().replace(f"{folder.path}/", "").replace(f"{folder.site}/", "")
    (folder.path / "jackfield.toml").write_text(text)
    shutil.copy(folder.site / "tool_registry.json", folder.path)

    async def run() -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        command = ["-m", "jackfield_cli", "mcp", "--folder", str(folder.path)]
        server = StdioServerParameters(
            command=sys.executable, args=command, env=folder.environ, cwd=elsewhere
        )
        async with Client(server) as client:
            result = await client.call_tool("mct_look", {"text": "x"})
        assert result.structured_content == {"words": 1, "text": "x"}
        assert (folder.path / "jackfield.db").exists()
        assert list(elsewhere.iterdir()) == []

    asyncio.run(run())


def test_over_stdio_a_waiting_call_says_how_a_person_can_approve_it(folder: McpFolder) -> None:
    async def run(**settings: str) -> str:
        async with Client(stdio(folder, **settings)) as client:
            waiting = await client.call_tool("mct_book", {"text": "x"})
        # Over stdio, nothing shows the call to the user, so the failure must not claim that it was shown.
        failure = waiting.structured_content["error"]
        assert failure["message"] == "Not run yet: the call waits for the user's approval."
        return str(waiting.content[-1])

    assert "set `public_url` in [endpoints.mcp]" in asyncio.run(run())
    linked = asyncio.run(run(public_url="https://tools.example"))
    assert "Approve or decline it at https://tools.example/#/confirmation/" in linked


def test_a_call_finishes_without_a_traceback_if_the_client_dies(folder: McpFolder) -> None:
    async def run() -> None:
        server = stdio(folder)
        reading, writing = os.pipe()
        process = await asyncio.create_subprocess_exec(
            server.command, *server.args, env=server.env, cwd=server.cwd,
            stdin=asyncio.subprocess.PIPE, stdout=writing, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        os.close(writing)
        assert process.stdin is not None
        assert process.stderr is not None
        call = {"name": "mct_note", "arguments": {"text": "x", "before": "go"}}
        for message in (
            INITIALIZE,
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        ):
            process.stdin.write(json.dumps(message).encode() + b"\n")
        await folder.until("begun x")
        # A client that dies closes both pipes.
        os.close(reading)
        process.stdin.close()
        folder.open_gate("go")
        errors = await process.stderr.read()
        assert b"Traceback" not in errors
        assert await process.wait() == 0
        assert folder.effects("done x") == 1

    asyncio.run(run())
