"""Questions of running tools to an MCP client: a form for its user, a text of its model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_harness import ERAS, McpFolder, running_host
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageResult,
    ElicitResult,
    ErrorData,
    ImageContent,
    TextContent,
)

each_era = pytest.mark.parametrize("era", ERAS)


class Person:
    """The user of a client, who answers every question in the same way."""

    def __init__(self, action: Any, content: Any = None) -> None:
        self.asked: list[Any] = []
        self._answer = ElicitResult(action=action, content=content)

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.asked.append(params)
        return self._answer


def poem(text: str = "Tea.", stop_reason: str = "endTurn") -> CreateMessageResult:
    content = TextContent(type="text", text=text)
    return CreateMessageResult(role="assistant", content=content, model="m", stop_reason=stop_reason)


async def answers(client: Client, tool: str = "mct_asks", text: str = "Who?") -> Any:
    result = await client.call_tool(tool, {"text": text})
    assert result.structured_content is not None
    return result.structured_content["answers"]


@each_era
def test_a_client_shows_the_question_of_a_tool_and_the_tool_gets_the_answer(
    folder: McpFolder, era: str
) -> None:
    async def run() -> None:
        person = Person("accept", {"name": "Ada", "size": "m"})
        async with running_host(folder) as host, host.client(era, elicitation_callback=person) as client:
            assert await answers(client) == [["submitted", {"name": "Ada", "size": "m"}]]
        (asked,) = person.asked
        assert asked.message == "Who?"
        assert asked.requested_schema["required"] == ["name"]
        assert asked.requested_schema["properties"]["size"]["default"] == "s"

    asyncio.run(run())


@each_era
@pytest.mark.parametrize(
    ("action", "outcome"), [("decline", "dismissed"), ("cancel", "unanswered")], ids=["decline", "cancel"]
)
def test_a_tool_learns_that_the_user_does_not_answer(
    folder: McpFolder, era: str, action: str, outcome: str
) -> None:
    async def run() -> None:
        person = Person(action)
        async with running_host(folder) as host, host.client(era, elicitation_callback=person) as client:
            assert await answers(client) == [[outcome, {}]]

    asyncio.run(run())


@each_era
def test_a_client_that_cannot_ask_leaves_the_question_unanswered(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.client(era) as client:
            assert await answers(client) == [["unanswered", {}]]

    asyncio.run(run())


def test_values_that_do_not_fit_the_form_are_no_answer(folder: McpFolder) -> None:
    async def run() -> None:
        person = Person("accept", {"size": "xl"})
        async with running_host(folder) as host:
            async with host.client("legacy", elicitation_callback=person) as client:
                assert await answers(client) == [["unanswered", {}]]
            assert len(person.asked) == 1
            async with host.client("2026-07-28", elicitation_callback=person) as client:
                asked: Any = await client.session.call_tool(
                    "mct_asks", {"text": "Who?"}, allow_input_required=True
                )
                # Without a handshake, the client can correct its answer.
                given: list[Any] = [
                    {"size": "xl"},
                    {"name": 5},
                    {"name": "Ada", "more": "x"},
                    {"name": "Ada"},
                ]
                for content in given:
                    asked = await client.session.call_tool(
                        "mct_asks",
                        {"text": "Who?"},
                        allow_input_required=True,
                        input_responses={"question-1": ElicitResult(action="accept", content=content)},
                        request_state=asked.request_state,
                    )
                assert asked.structured_content == {"answers": [["submitted", {"name": "Ada"}]]}

    asyncio.run(run())


@each_era
def test_a_confirmed_call_can_ask(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        async def answer(context: Any, params: Any) -> ElicitResult:
            is_confirmation = "approve" in params.requested_schema["properties"]
            content: Any = {"approve": True} if is_confirmation else {"name": params.message}
            return ElicitResult(action="accept", content=content)

        async with (
            running_host(folder, {"trust_clients": True, "console": False}) as host,
            host.client(era, elicitation_callback=answer) as client,
        ):
            assert await answers(client, "mct_signs", "a/b") == [
                ["submitted", {"name": "a"}],
                ["submitted", {"name": "b"}],
            ]

    asyncio.run(run())


@each_era
def test_the_clients_model_writes_a_text_for_a_tool(folder: McpFolder, era: str) -> None:
    async def run() -> None:
        asked: list[Any] = []

        async def write(context: Any, params: Any) -> CreateMessageResult:
            asked.append(params)
            return poem(stop_reason="maxTokens")

        async with running_host(folder) as host, host.client(era, sampling_callback=write) as client:
            result = await client.call_tool("mct_composes", {"text": "A poem."})
        assert result.structured_content == {"text": "Tea.", "truncated": True}
        (params,) = asked
        assert (params.system_prompt, params.max_tokens) == ("Be brief.", 50)
        assert [message.content.text for message in params.messages] == ["A poem."]
        assert params.tools is None

    asyncio.run(run())


def test_a_client_that_refuses_or_sends_no_text_leaves_the_tool_without(folder: McpFolder) -> None:
    async def run() -> None:
        replies: list[Any] = [
            ErrorData(code=-1, message="no"),
            poem().model_copy(
                update={"content": ImageContent(type="image", data="AA==", mime_type="image/png")}
            ),
        ]

        async def write(context: Any, params: Any) -> Any:
            return replies.pop()

        async with running_host(folder) as host, host.client("legacy", sampling_callback=write) as client:
            for _ in range(2):
                assert (await client.call_tool("mct_composes", {"text": "A poem."})).is_error
        assert replies == []

    asyncio.run(run())


def test_a_tool_that_fails_without_a_capability_of_the_client_names_it(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder) as host:
            async with host.client("2026-07-28") as client:
                with pytest.raises(MCPError) as caught:
                    await client.call_tool("mct_composes", {"text": "A poem."})
                assert caught.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY
                assert caught.value.error.data["requiredCapabilities"] == {"sampling": {}}
            async with host.client("legacy") as client:
                assert (await client.call_tool("mct_composes", {"text": "A poem."})).is_error

    asyncio.run(run())
