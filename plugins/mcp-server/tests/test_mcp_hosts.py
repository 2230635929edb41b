"""Clients whose requests reach different hosts of one store: sessions, keys, cancellations and questions."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp_harness import ACCEPT, INITIALIZE, HostProcess, McpFolder, RunningHost, keyed, running_host
from mcp_types import (
    CallToolResult,
    CreateMessageResult,
    ElicitResult,
    Implementation,
    InputRequiredResult,
    TextContent,
)

FACTS = {"name": "mct_facts", "arguments": {"text": "x"}}


class Connection:
    """A client with a handshake that sends each request to the host that a test chooses."""

    def __init__(self, http: httpx2.AsyncClient, connection: str) -> None:
        self._http = http
        self._headers = {**ACCEPT, "Mcp-Session-Id": connection}
        self._count = 0

    @classmethod
    async def open(cls, http: httpx2.AsyncClient, host: RunningHost) -> Connection:
        started = await http.post(f"{host.url}/mcp", json=INITIALIZE, headers=ACCEPT)
        return cls(http, started.headers["mcp-session-id"])

    async def request(self, host: RunningHost, method: str, params: Any, request_id: Any = None) -> Any:
        self._count += 1
        body = {"jsonrpc": "2.0", "id": request_id or self._count, "method": method, "params": params}
        return await self._http.post(f"{host.url}/mcp", json=body, headers=self._headers)

    async def notify(self, host: RunningHost, method: str, params: Any) -> None:
        body = {"jsonrpc": "2.0", "method": method, "params": params}
        accepted = await self._http.post(f"{host.url}/mcp", json=body, headers=self._headers)
        assert accepted.status_code == 202

    async def facts(self, host: RunningHost) -> Any:
        answer = await self.request(host, "tools/call", FACTS)
        return answer.json()["result"]["structuredContent"]


async def facts(client: Client) -> Any:
    return (await client.call_tool("mct_facts", {"text": "x"})).structured_content


def test_each_connection_has_one_session_on_all_hosts(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder) as one, running_host(folder) as other, one.http() as http:
            first, second = [await Connection.open(http, one) for _ in range(2)]
            found = [await first.facts(host) for host in (one, other, one)]
            assert len({each["session"] for each in found}) == 1
            turns = [each["turn"] for each in found]
            assert turns == sorted(set(turns))
            # Another window of the same program.
            assert (await second.facts(other))["session"] != found[0]["session"]

    asyncio.run(run())


def test_clients_without_a_handshake_share_the_session_of_their_name(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder) as one, running_host(folder) as other:
            found = []
            for host in (one, other, one):
                async with host.client("2026-07-28") as client:
                    found.append(await facts(client))
            assert len({each["session"] for each in found}) == 1
            assert len({each["turn"] for each in found}) == 3
            info = Implementation(name="another", version="1")
            async with one.client("2026-07-28", client_info=info) as client:
                assert (await facts(client))["session"] != found[0]["session"]

    asyncio.run(run())


def test_a_key_finds_its_outcome_after_the_client_has_connected_again(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder) as one, running_host(folder) as other:
            results = []
            for host in (one, other):
                async with host.client("legacy") as client:
                    results.append(await client.call_tool("mct_note", {"text": "once"}, meta=keyed("k")))
                    other_call = await client.call_tool("mct_note", {"text": "other"}, meta=keyed("k"))
                    assert other_call.is_error
            assert results[0].structured_content == results[1].structured_content
        assert folder.effects("done once") == 1

    asyncio.run(run())


def test_a_cancellation_reaches_the_host_that_runs_the_call(folder: McpFolder) -> None:
    """Reads stop, writes finish; in both eras, on two hosts in processes of their own."""

    async def run() -> None:
        async with HostProcess(folder) as one, HostProcess(folder) as other, one.http() as http:
            connection = await Connection.open(http, one)
            await connection.facts(other)
            calls = []
            for tool in ("mct_note", "mct_look"):
                params = {"name": tool, "arguments": {"text": tool, "before": "gate"}}
                calls.append(asyncio.create_task(connection.request(one, "tools/call", params, tool)))
                await folder.until(f"begun {tool}")
            for tool in ("mct_note", "mct_look"):
                await connection.notify(other, "notifications/cancelled", {"requestId": tool})
            # The hosts get the messages in order, so the write was cancelled before.
            await folder.until("stopped mct_look")
            assert folder.effects("stopped mct_note") == 0
            await asyncio.gather(*calls)

            async with one.client("2026-07-28") as here, other.client("2026-07-28") as there:
                arguments = {"text": "shared", "before": "never"}
                first = asyncio.create_task(here.call_tool("mct_look", arguments, meta=keyed("shared")))
                await folder.until("begun shared")
                # The second request waits for the first one's outcome; its client gives up.
                while not folder.effects("stopped shared"):
                    second = asyncio.create_task(there.call_tool("mct_look", arguments, meta=keyed("shared")))
                    await asyncio.wait({second}, timeout=0.3)
                    second.cancel()
                    await asyncio.gather(second, return_exceptions=True)
                assert (await first).is_error

            folder.open_gate("gate")
            await folder.until("done mct_note")
            assert folder.effects("begun shared") == 1

    asyncio.run(run())


def test_a_question_of_a_call_is_answered_on_another_host(folder: McpFolder) -> None:
    async def run() -> None:
        async def never(context: Any, params: Any) -> ElicitResult:
            raise AssertionError("the rounds are driven by hand")

        options: Any = {"mode": "2026-07-28", "elicitation_callback": never}
        async with (
            running_host(folder) as one,
            running_host(folder) as other,
            one.client(**options) as here,
            other.client(**options) as there,
        ):
            arguments = {"text": "Who?/And who else?"}
            asked: Any = await here.session.call_tool("mct_asks", arguments, allow_input_required=True)
            for name, client in (("Ada", there), ("Bob", here)):
                assert isinstance(asked, InputRequiredResult)
                assert asked.input_requests is not None
                ((key, request),) = asked.input_requests.items()
                expected = "Who?" if name == "Ada" else "And who else?"
                assert request.params is not None
                assert getattr(request.params, "message", "") == expected
                asked = await client.session.call_tool(
                    "mct_asks",
                    arguments,
                    allow_input_required=True,
                    input_responses={key: ElicitResult(action="accept", content={"name": name})},
                    request_state=asked.request_state,
                )
            assert isinstance(asked, CallToolResult)
            assert asked.structured_content == {
                "answers": [["submitted", {"name": "Ada"}], ["submitted", {"name": "Bob"}]]
            }
        assert folder.effects("begun Who?/And who else?") == 1

    asyncio.run(run())


def test_a_text_of_the_clients_model_reaches_the_call_through_another_host(folder: McpFolder) -> None:
    async def run() -> None:
        async def write(context: Any, params: Any) -> CreateMessageResult:
            raise AssertionError("the rounds are driven by hand")

        options: Any = {"mode": "2026-07-28", "sampling_callback": write}
        async with (
            running_host(folder) as one,
            running_host(folder) as other,
            one.client(**options) as here,
            other.client(**options) as there,
        ):
            arguments = {"text": "A poem."}
            asked: Any = await here.session.call_tool("mct_composes", arguments, allow_input_required=True)
            assert isinstance(asked, InputRequiredResult)
            content = TextContent(type="text", text="Tea.")
            poem = CreateMessageResult(role="assistant", content=content, model="m", stop_reason="endTurn")
            result = await there.session.call_tool(
                "mct_composes",
                arguments,
                allow_input_required=True,
                input_responses=dict.fromkeys(asked.input_requests or {}, poem),
                request_state=asked.request_state,
            )
            assert isinstance(result, CallToolResult)
            assert result.structured_content == {"text": "Tea.", "truncated": False}

    asyncio.run(run())
